"""What HPAs, workloads and pools were: a point a minute for a day, in a bounded number of bytes."""
