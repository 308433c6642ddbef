"""The tool as its users meet it: a real process, a real wheel."""
