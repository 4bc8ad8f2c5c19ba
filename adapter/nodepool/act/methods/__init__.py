"""The provisioning methods: CapacityBuffers, placeholder pods, ProvisioningRequests."""
