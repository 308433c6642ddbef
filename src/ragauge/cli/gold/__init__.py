"""Draft, check, pin, freeze and move a gold set.

GOLD is a gold set in any dialect; a corpus is a folder that `ragauge corpus build` wrote.
"""
