"""Engines: whatever does tasks on the ranges of a file; all give the same results in one order."""
