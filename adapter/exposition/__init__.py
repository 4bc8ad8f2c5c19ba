"""The bytes of a page become samples."""
