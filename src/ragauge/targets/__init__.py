"""Targets: a question in, a trace out; one file for each way to reach a system."""
