"""Move traces from one corpus to the next.

A corpus is a folder that `ragauge corpus build` wrote.
"""
