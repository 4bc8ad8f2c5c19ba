"""The ``serve`` process: wiring, the pipeline in use, security and self-metrics."""
