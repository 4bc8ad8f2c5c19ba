"""KEDA's external scaler, served over gRPC from the store that the HPA's API reads.

``externalscaler_pb2.py`` and its stub are compiled from ``externalscaler.proto`` by
``make proto``; a test compares them. gRPC costs about 30 MB and is imported only by
:mod:`adapter.keda.server` and what it needs, so a process without it does not pay.
"""
