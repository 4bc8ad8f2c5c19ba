"""What every command needs: its configuration file, reloads, logs and health check."""
