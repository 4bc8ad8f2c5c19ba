"""Authenticate to stores, with credentials in files or identities of Azure, Google and AWS."""
