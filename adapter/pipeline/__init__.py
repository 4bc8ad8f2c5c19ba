"""From exporters' pages and pods to a value for each pod and metric, with reasons."""
