"""prometheus-adapter's configuration file: its rules, and the metrics that they make of series."""
