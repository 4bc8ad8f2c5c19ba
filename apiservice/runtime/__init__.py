"""Parts of a long-running process: background tasks, sliced work, caches, file watches."""
