"""One file a report: each exports REPORT, a pure function from a view of the scores to text."""
