"""`conformance`: evidence for CNCF's AI conformance that an HPA scales pods with accelerators."""
