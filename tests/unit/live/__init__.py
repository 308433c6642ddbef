"""Tests of the live monitor."""
