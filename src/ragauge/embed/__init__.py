"""Embedders, the cache of their vectors, and delta-S of two texts."""
