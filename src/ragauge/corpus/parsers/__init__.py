"""Parsers: from the bytes of a file to canonical text, headings and typed pieces."""
