"""The campaign of `make fuzz`: broken files and options for every reader, parser and command."""
