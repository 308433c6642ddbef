"""Traces written by a running app: by hand, by decorator, by callbacks of its framework."""
