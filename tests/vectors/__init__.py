"""Vectors: rows with values that were computed by hand, a JSON object a line."""
