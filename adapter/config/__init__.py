"""The settings, and how a process reads them, reloads them and logs."""
