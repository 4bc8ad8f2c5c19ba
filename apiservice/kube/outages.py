"""One cause of failure is said once, however many requests fail for it."""

from __future__ import annotations


class Outages:
    """Who fails now, by cause. One for each client of a cluster."""

    def __init__(self) -> None:
        self._failing: dict[object, str] = {}
        """Who fails, to the cause. There are as many as there are watches and loops."""

    def begins(self, who: object, cause: str) -> bool:
        """Whether nobody has failed for this cause yet: it is to be said."""
        known = self.known(cause)
        self._failing[who] = cause
        return not known

    def ends(self, who: object) -> None:
        """This one fails no longer."""
        self._failing.pop(who, None)

    def known(self, text: str) -> bool:
        """Whether the text names a cause that was said."""
        return any(cause in text for cause in self._failing.values())
