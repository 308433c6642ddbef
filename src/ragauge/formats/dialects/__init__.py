"""One file a dialect: the field names of a family of gold and trace files."""
