"""What a person sees: a real server and a real Chromium."""
