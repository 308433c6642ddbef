"""Runs in a store: put, find, rescore, export, history."""
