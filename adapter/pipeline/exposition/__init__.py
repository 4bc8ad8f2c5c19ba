"""Parse the bytes of a page into samples."""
