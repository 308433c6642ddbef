"""Build, compare and chunk a corpus of documents.

A corpus is a folder: canonical texts, their title tree, and typed blocks with ids that last.
"""
