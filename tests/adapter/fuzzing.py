"""What real input is bent into."""

from __future__ import annotations

from hypothesis import strategies as st

TOKENS = (
    b"", b'"', b"{", b"}", b"} ", b"\\", b"\n", b"\r\n", b",", b"=", b" ", b"#", b"_", b"\x00",
    b"\xff", b"NaN", b"+Inf", b"-1", b"-0.000001", b"100.5", b"1e999", b"1_0", b"808334905",
    b"2147483632", b"4294967295", b"9223372036854775794", b"140737488355328.000000", b"<<<NULL>>>",
    b" 1700000000000", b" -1e300", b"# EOF\n", b'pod="', b'exported_pod="x",', b'vgpu="1",',
    b'GPU_I_ID="7",', b'UUID="",', b'gpu="0",gpu="1",', b"_RATIO", b"null", b"[", b"]", b"1e400",
)  # fmt: skip
"""What is written over a page: syntax, DCGM's blanks, what #418 and DCGM#199 show, labels."""


def bent(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    """Seeds with a few pieces replaced, repeated or dropped."""
    return st.builds(_bend, st.sampled_from(seeds), st.lists(_BENDS, min_size=1, max_size=6))


_Bend = tuple[float, int, bytes | None]
"""Where, as a share of the text; bytes taken away; what is put there, None for the same again."""

_BENDS: st.SearchStrategy[_Bend] = st.tuples(
    st.floats(0, 1),
    st.integers(0, 3) | st.integers(0, 400),
    st.none() | st.sampled_from(TOKENS) | st.binary(max_size=8),
)


def _bend(seed: bytes, bends: list[_Bend]) -> bytes:
    for share, length, piece in bends:
        start = round(share * len(seed))
        gone = seed[start : start + length]
        seed = seed[:start] + (gone * 2 if piece is None else piece) + seed[start + length :]
    return seed
