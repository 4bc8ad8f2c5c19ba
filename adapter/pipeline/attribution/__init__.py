"""From device series to readings: which pods a device's value belongs to, and in which part."""
