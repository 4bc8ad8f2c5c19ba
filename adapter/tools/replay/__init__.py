"""Replay: what an HPA would have done with other settings, computed from a recording.

:mod:`.virtualcluster` takes in a recording with the store, the catalogue and the attribution that
``serve`` uses, on the recording's own time. So a replay computes the values that ``serve`` would
have served at any second of the recording, and :mod:`adapter.hpa` decides on them as the
controller does.
"""
