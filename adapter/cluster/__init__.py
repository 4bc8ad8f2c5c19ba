"""Pods, nodes and services as the API server lists and watches them."""
