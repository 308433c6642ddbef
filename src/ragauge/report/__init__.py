"""What people and machines read: scores, comparisons, pages, terminals and CI."""
