"""Import traces of other tools, give results back to them, and move traces to the next corpus.

A corpus is a folder that `ragauge corpus build` wrote.
"""
