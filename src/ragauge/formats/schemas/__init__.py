"""JSON Schemas of the files that ragauge reads and writes, made from what the code knows."""
