"""What is shown in a terminal and nowhere else."""
