"""What became of every block of a corpus in its next version, as a migration map."""
