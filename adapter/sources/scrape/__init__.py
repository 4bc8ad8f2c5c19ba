"""Exporters and server pages, scraped directly."""
