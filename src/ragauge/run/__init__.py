"""Asking a target the questions of a gold set: slots, retries, resuming; shadow runs."""
