"""Recordings: the samples and objects that ``serve`` read, in one append-only file.

``serve --record`` writes one, and :mod:`adapter.tools.replay` reads it. docs/replay.md describes
the format.
"""
