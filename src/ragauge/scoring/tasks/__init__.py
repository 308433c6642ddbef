"""What a worker does with a range of rows; nothing here imports numpy."""
