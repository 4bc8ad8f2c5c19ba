"""What ``top`` and ``ui`` say about the whole cluster: decisions of HPAs in words, and the verdict.

Everything here is a function of what the API server answered: no I/O, and no invented number.
"""
