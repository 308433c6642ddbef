"""Consent: what a project's `ragauge.toml` may connect to and run, and who allowed it."""
