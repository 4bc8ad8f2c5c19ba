"""Credentials for stores: files, and the identities of Azure, Google and AWS."""
