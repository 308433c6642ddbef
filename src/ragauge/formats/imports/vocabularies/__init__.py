"""One file per convention for spans: which span retrieved, and where its documents stand."""
