"""The provisioning methods: CapacityBuffers and placeholder pods."""
