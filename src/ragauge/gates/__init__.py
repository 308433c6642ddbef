"""Gates: reading them, judging scores by them, drops against a baseline."""
