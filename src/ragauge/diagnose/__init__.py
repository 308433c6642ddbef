"""Diagnosis: rules that go from the numbers of a run to what is likely to be wrong with it."""
