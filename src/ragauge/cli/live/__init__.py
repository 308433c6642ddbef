"""Look at what `ragauge serve` has measured, and at its alerts.

The store is the one that the server writes to; the server may run meanwhile.
"""
