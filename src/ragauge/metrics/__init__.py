"""One file a family: each exports METRICS, a tuple of frozen metrics over a batch."""
