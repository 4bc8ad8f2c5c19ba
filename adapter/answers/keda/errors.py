"""The reasons why a trigger has no answer.

::

    ScalerError
    ├── BadTrigger     the metadata is wrong until it is corrected
    ├── NoReadings     a pod exists without a value, on every replica
    ├── NotReady       this replica has not read the pods; another may have
    └── TooManyStreams the limit of open streams is reached
"""

# ruff: noqa: N818 - the names say what is wrong

from __future__ import annotations


class ScalerError(Exception):
    """There is no answer; the message says why."""


class BadTrigger(ScalerError):
    """The metadata is wrong; the message names the key and the fix."""


class NoReadings(ScalerError):
    """Pods exist without a value; the message says which and why."""


class NotReady(ScalerError):
    """This replica has not read the data yet, or its data is outdated."""


class TooManyStreams(ScalerError):
    """The limit of open streams is reached."""
