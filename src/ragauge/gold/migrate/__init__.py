"""Gold sets and traces rewritten for a new version of their corpus."""
