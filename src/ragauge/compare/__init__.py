"""Two runs on common ground: what became of each question, and of each metric."""
