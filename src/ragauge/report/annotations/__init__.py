"""Results that go back to the traces they are of: one file a service that shows them."""
