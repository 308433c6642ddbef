"""File formats: what people have on disk becomes gold items and traces."""
