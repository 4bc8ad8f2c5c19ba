"""Try a query again if its failure may pass."""

from __future__ import annotations

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from adapter.pipeline.sources.errors import SourceError

_RETRIED = frozenset({"connect", "timeout", "protocol", "truncated", "unavailable"})


def attempts(retries: int) -> AsyncRetrying:
    """Return what calls a function up to ``retries`` times more; the last error is raised."""
    return AsyncRetrying(
        stop=stop_after_attempt(retries + 1),
        wait=wait_random_exponential(multiplier=0.2, max=2),
        retry=retry_if_exception(_worth_another_try),
        reraise=True,
    )


def _worth_another_try(error: BaseException) -> bool:
    return isinstance(error, SourceError) and error.reason in _RETRIED
