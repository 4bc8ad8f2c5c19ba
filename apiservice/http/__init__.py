"""The HTTP server: connections, TLS handshakes, limits, and draining."""
