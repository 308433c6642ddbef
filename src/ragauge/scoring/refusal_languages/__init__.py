"""How a language declines to answer: one module a language, each with the constant `PATTERNS`."""
