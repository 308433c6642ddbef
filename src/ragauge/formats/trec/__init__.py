"""TREC and BEIR files: judgements and runs."""
