"""Connections, limits and draining: the HTTP server."""
