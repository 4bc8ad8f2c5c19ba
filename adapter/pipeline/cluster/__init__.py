"""Local copies of pods, nodes and services, fed by list and watch or by a file, and lookups."""
