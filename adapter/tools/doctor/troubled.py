"""Pages that cannot be used, and those that the API server does not let a client read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.facts import Facts, UnreadError
from adapter.tools.doctor.page import ExporterPage, Trouble
from adapter.tools.doctor.release import helm_test

Row = tuple[SeenPod, ExporterPage]


def troubled(
    facts: Facts, pods: Sequence[SeenPod], pages: Mapping[str, ExporterPage], *kinds: Trouble
) -> Iterator[Row]:
    """Yield the pages with one of these troubles.

    Raises:
        UnreadError: in the end, if pages were not read: nothing is known of them.
    """
    found = [(each, page) for each in pods if (page := pages.get(each.key)) is not None]
    yield from ((each, page) for each, page in found if page.trouble in kinds)
    unread = [page for _, page in found if page.trouble is Trouble.UNREAD]
    if unread:
        raise unforwarded(facts, unread, len(found))


def usable(facts: Facts, pods: Sequence[SeenPod], pages: Mapping[str, ExporterPage]) -> list[Row]:
    """Return the pages without trouble.

    Raises:
        UnreadError: no page was read, and there are some.
    """
    found = [(each, page) for each in pods if (page := pages.get(each.key)) is not None]
    unread = [page for _, page in found if page.trouble is Trouble.UNREAD]
    if unread and len(unread) == len(found):
        raise unforwarded(facts, unread, len(found))
    return [(each, page) for each, page in found if page.trouble is None]


def unforwarded(facts: Facts, pages: Sequence[ExporterPage], of: int) -> UnreadError:
    """Return why pages were not read, and the command that reads them from inside the cluster."""
    first = pages[0]
    text = f"{len(pages)} of {of} pages were not read, such as pod {first.pod}: {first.detail}"
    release = facts.release.value
    return UnreadError(text, helm_test(release.workload) if release else "")
