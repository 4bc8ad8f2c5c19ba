"""A client of the Kubernetes API: requests, lists and watches."""
