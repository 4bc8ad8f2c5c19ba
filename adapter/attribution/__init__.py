"""Device series become readings: which pod a value belongs to, and how much of it."""
