"""Kinds of store: places that keep runs, each behind the schemes of its URLs."""
