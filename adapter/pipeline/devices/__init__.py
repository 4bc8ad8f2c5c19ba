"""From samples to device series: find the device of each sample and check its number."""
