"""Certificates: files, self-signed ones, an authority, and the TLS context."""
