"""Take the text of some series apart without decoding their labels.

Engines write ``{"metric":{LABELS},"values":[SAMPLES]},{"metric":{LABELS},"values":[SAMPLES]}``, and
so on. At :data:`NEXT`, complete series are cut off from the text that has arrived. These are cut
again at ``_CUT``, between two series, and at ``_VALUES``, between the labels and the samples of
one. What remains without the labels is ``{"values":[SAMPLES]},{"values":[SAMPLES]}``, and so on.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

NEXT: Final = b'},{"metric":{'
_BEGIN: Final = b'{"metric":'
_CUT: Final = b"}," + _BEGIN
_VALUES: Final = b',"values":'
_REST_BEGIN: Final = b'{"values":'
_REST_CUT: Final = b"}," + _REST_BEGIN

SeriesValues = list[tuple[float, str]]
"""Of a series: (epoch seconds, text of the number), oldest first."""


class _Unlabelled(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A series of a matrix without its labels. One with other members is read the full way."""

    values: SeriesValues


_unlabelled = msgspec.json.Decoder(list[_Unlabelled])
_one = msgspec.json.Decoder(msgspec.Raw)


class SeriesBlock(NamedTuple):
    """Some series, taken apart: a list of each part, in their order.

    The text was cut rightly if it is the text of these series. That is so under three conditions:

    1. What remains without the labels is a JSON list of objects that have samples and nothing else.
       Samples are lists, without an object in them. No JSON string contains ``_REST_CUT``, because
       its quotes would be escaped. So each ``_REST_CUT`` is between two of these objects.
    2. There are as many objects as pieces. So each piece has the samples of one object.
    3. The labels of each piece are one JSON value. So the piece with its labels is one object too.

    :func:`split_series` checks the first two, and :meth:`is_sound` the third.
    """

    texts: list[bytes]
    """Their labels."""
    digests: array[int]
    """Hashes of these."""
    values: list[SeriesValues]

    def is_sound(self, places: Sequence[int | None]) -> bool:
        """Return whether the text of each series' labels is one JSON value.

        That is certain of those in the answer before.
        """
        try:
            for place, text in zip(places, self.texts, strict=True):
                if place is None and bytes(_one.decode(text)) != text:
                    return False
        except msgspec.DecodeError:
            return False
        return True


def split_series(text: bytes) -> SeriesBlock | None:
    """Take series apart; None if they are not written as usual, or are not a matrix."""
    if not text.startswith(_BEGIN):
        return None
    cut = [part.rpartition(_VALUES) for part in text[len(_BEGIN) : -1].split(_CUT)]
    rest = _REST_CUT.join([samples for _, _, samples in cut])
    try:
        series = _unlabelled.decode(b"[%b%b}]" % (_REST_BEGIN, rest))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    texts = [labels for labels, _, _ in cut]
    if len(series) != len(texts):
        return None
    return SeriesBlock(texts, array("q", map(hash, texts)), [row.values for row in series])
