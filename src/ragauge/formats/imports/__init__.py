"""Files of other tools: recognised by their shape, and read as gold rows or traces of our own."""
