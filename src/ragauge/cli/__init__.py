"""The command line: one file a command, a thin face over the API."""
