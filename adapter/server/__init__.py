"""The process ``serve``, and what it records."""
