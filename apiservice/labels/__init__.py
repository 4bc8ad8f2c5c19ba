"""Label selectors: parsing and matching."""
