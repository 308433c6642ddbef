"""Statistics over plain arrays; nothing here knows what a trace is."""
