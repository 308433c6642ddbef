"""Rules about gold sets that can be read and still cannot be meant as they are."""
