"""From parsed files to a corpus: the title tree, blocks with stable ids, and the manifest."""
