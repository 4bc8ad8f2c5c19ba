"""Azure Monitor: Container Insights as a source."""
