"""Carries the plan out: writes headroom objects, their lifelines, events and deletion costs."""
