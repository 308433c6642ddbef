"""The nouns: frozen values without any reading or writing."""
