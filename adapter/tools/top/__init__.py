"""``top``: what ``ui`` shows, in a terminal; a plain table where there is no terminal.

``facts`` reads the cluster. ``tables``, ``order``, ``state`` and ``frame`` are pure: rows, sorting
and filtering, the keys, and the lines of the picture. ``live`` is the terminal.
"""
