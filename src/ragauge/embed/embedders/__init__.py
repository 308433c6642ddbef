"""Embedders: texts in, vectors out; one file for each kind."""
