"""The registry times the contract: what every component must do, whoever wrote it."""
