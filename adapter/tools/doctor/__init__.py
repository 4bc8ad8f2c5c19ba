"""Checks of a cluster, or of manifests, for what keeps GPU metrics from HPAs.

:mod:`.collect` reads facts, the functions of :mod:`.checks` turn facts into findings, and
:mod:`.text` prints them. A check is a pure function, so a fact that could not be read ends only
the checks that need it.
"""
