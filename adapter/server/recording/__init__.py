"""Recordings: the samples and objects that ``serve`` read, in one append-only file.

``serve --record`` writes one, and :mod:`adapter.tools.replay` reads it.

A recording is a sequence of gzip members (RFC 1952). Each has one extra field ``GM`` of four bytes,
the size of the whole member, little-endian, by which a reader finds the next block after a damaged
one. The text is one JSON object a line, with its kind in ``k``. Times are seconds since 1970.

- ``recording`` begins a run: ``version`` (1), ``time``, ``program``, ``settings``. What earlier
  lines said about objects, layouts and label sets ends.
- ``labels`` is a label set: ``id``, ``labels``.
- ``layout`` has the series of a page: ``id``, ``origin``, ``names``, and ``labels``, the ids of the
  label sets. ``node``, ``pod`` and ``serves`` are those of the page.
- ``page``: ``layout``, ``time``, ``values``. ``at`` has the times of the samples if others.
  A value is a number, or a text (``NaN``, ``inf``; ``1.0`` for a one that was written with
  decimals). ``rejects`` counts lines that could not be read.
- ``pod``, ``node``, ``hpa``: an object as of ``time``, or with ``gone`` the last state of a deleted
  one. With ``until``, an HPA's status was written between ``time`` and ``until``; the line comes
  before the others of that span.
- ``missed`` has a ``stretch``: ``start``, ``end``, ``reason`` and ``about`` of something that is
  missing, or is not what it seems.
"""
