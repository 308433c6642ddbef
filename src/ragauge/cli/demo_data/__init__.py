"""The bundled example: a help desk's gold set and one run of traces."""
