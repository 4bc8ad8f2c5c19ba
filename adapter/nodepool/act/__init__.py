"""Apply the plan: write headroom objects, their lifelines and events."""
