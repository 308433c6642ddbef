"""Promises about the shape of the source, checked on its text."""
