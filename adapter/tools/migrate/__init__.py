"""`migrate`: what moves here from another metrics adapter, what differs, and how to move."""
