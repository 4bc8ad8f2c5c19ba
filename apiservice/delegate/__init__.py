"""Other servers of the metrics APIs, asked for the metrics that this server does not have."""
