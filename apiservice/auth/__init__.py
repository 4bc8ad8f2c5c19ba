"""Who asks, and may they: the proxy's certificate, tokens and access reviews."""
