"""Why a trigger has no answer.

::

    ScalerError
    ├── BadTrigger     the metadata is wrong until somebody corrects it
    ├── NoReadings     a pod exists and there is no telling what it does; no replica can
    ├── NotReady       this replica has not heard of the pods; another may have
    └── TooManyStreams as many streams are open as may be
"""

# ruff: noqa: N818 - the names say what is wrong

from __future__ import annotations


class ScalerError(Exception):
    """There is no answer; the message says why."""


class BadTrigger(ScalerError):
    """The metadata is wrong; the message names the key and the fix."""


class NoReadings(ScalerError):
    """Pods exist that nothing is known of; the message says which and why."""


class NotReady(ScalerError):
    """This replica cannot know yet, or no longer."""


class TooManyStreams(ScalerError):
    """As many streams are open as may be."""
