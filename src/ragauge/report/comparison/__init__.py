"""Ways to write a comparison of two runs down."""
