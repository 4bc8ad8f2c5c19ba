"""The commands that read a cluster: they explain, check, show, compare and replay."""
