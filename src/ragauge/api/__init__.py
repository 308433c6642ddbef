"""The face for Python: commands as functions, and results that show and save themselves."""
