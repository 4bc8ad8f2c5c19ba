"""The identity in headers: the cases of upstream's requestheader_test.go, and hostile ones."""

from __future__ import annotations

import pytest

from apiservice.auth.requestheader import HeaderNames
from apiservice.identity import User

STANDARD = HeaderNames(uids=("X-Remote-Uid",))

STATED: dict[str, tuple[HeaderNames, list[tuple[bytes, bytes]], User | None]] = {
    "no header": (STANDARD, [], None),
    "an empty user": (STANDARD, [(b"x-remote-user", b"")], None),
    "a user alone": (STANDARD, [(b"x-remote-user", b"bob")], User("bob")),
    "groups alone name nobody": (STANDARD, [(b"x-remote-group", b"system:masters")], None),
    "group lines are one group each, commas and all": (
        STANDARD,
        [
            (b"x-remote-user", b"bob"),
            (b"x-remote-group", b"a,b"),
            (b"x-remote-group", b"c"),
            (b"x-remote-group", b""),
        ],
        User("bob", groups=("a,b", "c")),
    ),
    "the first user line wins": (
        STANDARD,
        [(b"x-remote-user", b"bob"), (b"x-remote-user", b"alice")],
        User("bob"),
    ),
    "an empty first line hides the second, as Header.Get does": (
        STANDARD,
        [(b"x-remote-user", b""), (b"x-remote-user", b"alice")],
        None,
    ),
    "the second header counts where the first is empty": (
        HeaderNames(users=("X-First", "X-Second")),
        [(b"x-second", b"two"), (b"x-first", b"")],
        User("two"),
    ),
    "names match in any case": (
        HeaderNames(users=("X-REMOTE-User",), groups=("x-Remote-GROUP",)),
        [(b"x-remote-user", b"bob"), (b"x-remote-group", b"g")],
        User("bob", groups=("g",)),
    ),
    "a uid": (
        STANDARD,
        [(b"x-remote-user", b"bob"), (b"x-remote-uid", b"1-2")],
        User("bob", uid="1-2"),
    ),
    "a uid that the cluster does not name is the client's own": (
        HeaderNames(),
        [(b"x-remote-user", b"bob"), (b"x-remote-uid", b"1-2")],
        User("bob"),
    ),
    "extra keys are percent-decoded": (
        STANDARD,
        [
            (b"x-remote-user", b"bob"),
            (b"x-remote-extra-example.com%2fscopes", b"one"),
            (b"x-remote-extra-example.com%2fscopes", b"two"),
            (b"x-remote-extra-plain", b"%2f stays"),
        ],
        User("bob", extra={"example.com/scopes": ("one", "two"), "plain": ("%2f stays",)}),
    ),
    "a malformed escape stays as it is": (
        STANDARD,
        [(b"x-remote-user", b"bob"), (b"x-remote-extra-a%2f%zz", b"v")],
        User("bob", extra={"a%2f%zz": ("v",)}),
    ),
    "bytes that are not UTF-8 cannot break anything": (
        STANDARD,
        [(b"x-remote-user", b"b\xffb"), (b"x-remote-group", "gr\u00fcn".encode())],
        User("b\ufffdb", groups=("gr\u00fcn",)),
    ),
    "no configured header names nobody": (
        HeaderNames(users=(), groups=(), extra_prefixes=()),
        [(b"x-remote-user", b"bob"), (b"", b"x")],
        None,
    ),
}


@pytest.mark.parametrize(("names", "headers", "user"), STATED.values(), ids=STATED.keys())
def test_stated_user(
    names: HeaderNames, headers: list[tuple[bytes, bytes]], user: User | None
) -> None:
    assert names.user(names.relevant([(b"accept", b"*/*"), *headers])) == user


def test_only_identity_headers_are_relevant() -> None:
    headers = [(b"host", b"h"), (b"x-remote-user", b"u"), (b"x-remote-userx", b"v")]

    assert STANDARD.relevant(headers) == ((b"x-remote-user", b"u"),)
