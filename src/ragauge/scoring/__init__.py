"""Gold and traces become scores."""
