"""The wire format of the metrics APIs: routes, quantities, lists of values."""
