"""The rows of docs/limits.md: the bounds of the code, and the tests that exceed them."""
