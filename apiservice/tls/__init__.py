"""Certificates: files, self-signed certificates, a certificate authority, and the TLS context."""
