"""From the cluster and its past to orders of headroom. Pure: it reads and writes nothing."""
