"""Questions one by one: what was expected, retrieved and answered."""
