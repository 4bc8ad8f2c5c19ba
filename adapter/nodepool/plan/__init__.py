"""Decide orders of headroom from the cluster and its history. Pure: no input or output."""
