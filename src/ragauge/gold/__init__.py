"""Tools on gold sets: lint, lock, pin, draft, negatives, stats, the editor and migration."""
