"""KEDA's external scaler over gRPC, served from the same store as the HPA's API.

``make proto`` compiles ``externalscaler_pb2.py`` and its stub from ``externalscaler.proto``; a test
compares them. gRPC costs about 30 MB. Only :mod:`adapter.answers.keda.server` and the modules that
it needs import it, so a process without KEDA does not pay for it.
"""
