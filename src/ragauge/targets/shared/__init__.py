"""What several targets need: addresses, indexes, and hits of other libraries."""
