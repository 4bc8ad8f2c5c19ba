"""Parts that every command needs: configuration file, reload, logs, health check."""
