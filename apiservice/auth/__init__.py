"""Authentication and authorization: front-proxy headers, certificates, tokens, access reviews."""
