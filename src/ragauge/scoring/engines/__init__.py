"""Engines: ways to run the reduction of many ranges; all give the same partials in one order."""
