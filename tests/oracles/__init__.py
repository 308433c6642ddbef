"""Independent scorers, from the definitions, that the package's numbers are held against."""
