"""The custom and external metrics APIs: readings as answers to requests."""
