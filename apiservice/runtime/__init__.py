"""What a long-running process needs: background tasks, sliced work, caches, watched files."""
