"""The live monitor behind `ragauge serve`: what comes in, is measured, watched and decided."""
