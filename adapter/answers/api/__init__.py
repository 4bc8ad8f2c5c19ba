"""Answer requests of the custom and external metrics APIs with readings."""
