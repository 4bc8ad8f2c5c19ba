"""Apply the plan: write headroom objects, their lifelines, events and deletion costs."""
