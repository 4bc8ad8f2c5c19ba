"""Hypothesis without its deadline: no test here is about how long something takes."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
