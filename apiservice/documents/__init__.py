"""The documents that an API server publishes: discovery, OpenAPI, version and health."""
