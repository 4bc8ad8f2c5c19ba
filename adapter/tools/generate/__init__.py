"""The `generate` command: manifests of HPAs and ScaledObjects, with the reason of each choice."""
