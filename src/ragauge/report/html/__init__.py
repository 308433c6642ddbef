"""The page: one HTML file that needs nothing else, for a run and for a comparison."""
