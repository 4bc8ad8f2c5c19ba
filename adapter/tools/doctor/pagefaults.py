"""Pages that cannot be used, and those that the API server does not let a client read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.facts import Facts, UnreadError
from adapter.tools.doctor.page import ExporterPage, Trouble
from adapter.tools.doctor.release import helm_test

Row = tuple[SeenPod, ExporterPage]


def troubled_pages(
    facts: Facts, pods: Sequence[SeenPod], pages: Mapping[str, ExporterPage], *kinds: Trouble
) -> Iterator[Row]:
    """Yield the pages with one of these troubles.

    Raises:
        UnreadError: in the end, if pages were not read: nothing is known of them.
    """
    rows = [(pod, page) for pod in pods if (page := pages.get(pod.key)) is not None]
    yield from ((pod, page) for pod, page in rows if page.trouble in kinds)
    unread = [page for _, page in rows if page.trouble is Trouble.UNREAD]
    if unread:
        raise unread_pages_error(facts, unread, len(rows))


def usable_pages(
    facts: Facts, pods: Sequence[SeenPod], pages: Mapping[str, ExporterPage]
) -> list[Row]:
    """Return the pages without trouble.

    Raises:
        UnreadError: no page was read, and there are some.
    """
    rows = [(pod, page) for pod in pods if (page := pages.get(pod.key)) is not None]
    unread = [page for _, page in rows if page.trouble is Trouble.UNREAD]
    if unread and len(unread) == len(rows):
        raise unread_pages_error(facts, unread, len(rows))
    return [(pod, page) for pod, page in rows if page.trouble is None]


def unread_pages_error(facts: Facts, pages: Sequence[ExporterPage], of: int) -> UnreadError:
    """Return why pages were not read, and the command that reads them from inside the cluster."""
    first = pages[0]
    text = f"{len(pages)} of {of} pages were not read, such as pod {first.pod}: {first.detail}"
    release = facts.release.value
    return UnreadError(text, helm_test(release.workload) if release else "")
