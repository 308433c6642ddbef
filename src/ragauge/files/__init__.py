"""Bytes on disk and on the wire: kinds of file, ranges, atomic writes, locks, HTTP."""
