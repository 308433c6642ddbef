"""The test suite; README.md in this folder says where a test goes."""
