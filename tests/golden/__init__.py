"""Whole outputs of the commands, compared byte by byte."""
