"""Only programs of this machine that have the key, and no other site, may read the page."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from adapter.tools.ui.security import Access
from adapter.tools.ui.server import listen
from tests.adapter.tools.ui.page import Served, serving


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


async def ask(page: Served, path: str = "/", method: str = "GET", **headers: str) -> httpx.Response:
    async with page.client() as client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.request(method, path, headers=named)


async def test_the_address_sets_the_cookie_and_leads_to_the_page(page: Served) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        opened = await client.get(page.access.url)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert cookie.startswith(f"gma_ui_{page.access.port}={page.access.token};")
        assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
        shown = await client.get(f"{page.url}/")
    assert shown.status_code == 200
    assert shown.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/", "/api/events", "/static/index.html", "/api/nothing"])
async def test_without_the_cookie_nothing_is_served(page: Served, path: str) -> None:
    wrong = {f"gma_ui_{page.access.port}": "x", "gma_ui_1": page.access.token}
    for cookies in ({}, wrong, {f"gma_ui_{page.access.port}": "é"}):
        header = "; ".join(f"{name}={value}" for name, value in cookies.items())
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{page.url}{path}", headers={b"cookie": header.encode()})
        assert answer.status_code == 403
        assert "open the address that `gpu-metrics-adapter ui` printed" in answer.text
        assert len(answer.text.splitlines()) == 1
        assert page.access.token not in answer.text


@pytest.mark.parametrize("token", ["", "x", "é", "%00"])
async def test_another_key_is_rejected_even_with_the_cookie(page: Served, token: str) -> None:
    answer = await ask(page, f"/?token={token}x")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_a_key_for_once_opens_once(page: Served) -> None:
    url = page.access.url_once()
    assert page.access.token not in url
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(url)).status_code == 303
        assert (await client.get(f"{page.url}/")).status_code == 200
        assert (await client.get(url)).status_code == 403


def test_keys_for_once_are_bounded() -> None:
    access = Access(1)
    urls = [access.url_once() for _ in range(20)]
    tokens = [url.partition("token=")[2] for url in urls]
    assert [access.opens(token) for token in tokens] == [False] * 12 + [True] * 8


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}.evil"],
)
async def test_another_name_is_rejected(page: Served, host: str) -> None:
    answer = await ask(page, host=host.format(port=page.access.port))
    assert answer.status_code == 403
    assert f"127.0.0.1:{page.access.port}" in answer.text
    assert (await ask(page, host=f"LOCALHOST:{page.access.port}")).status_code == 200


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1:{port}", "evil.example"]])
async def test_a_request_without_one_host_is_rejected(page: Served, hosts: list[str]) -> None:
    lines = [f"Host: {host.format(port=page.access.port)}" for host in hosts]
    cookie = f"Cookie: {page.access.cookie}={page.access.token}"
    text = "\r\n".join(["GET / HTTP/1.0", *lines, cookie, "", ""])
    reader, writer = await asyncio.open_connection("127.0.0.1", page.access.port)
    writer.write(text.encode())
    head = await reader.readline()
    writer.close()
    assert head.split()[1] in (b"400", b"403")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}"])
async def test_another_origin_is_rejected(page: Served, origin: str) -> None:
    own = f"http://127.0.0.1:{page.access.port}"
    assert (await ask(page, origin=origin.format(port=page.access.port))).status_code == 403
    assert (await ask(page, origin=own)).status_code == 200


@pytest.mark.parametrize(
    ("site", "status"),
    [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("odd", 403)],
)
async def test_requests_of_other_sites_are_rejected(page: Served, site: str, status: int) -> None:
    assert (await ask(page, sec_fetch_site=site)).status_code == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
async def test_only_reading_is_allowed(page: Served, method: str) -> None:
    answer = await ask(page, method=method)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/static/index.html", "/nothing", "/api/nothing"])
async def test_each_answer_has_the_headers_that_a_browser_enforces(page: Served, path: str) -> None:
    answer = await ask(page, path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == ("no-store" if "/api/" in path else "no-cache")
    assert "access-control-allow-origin" not in answer.headers
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../parts.py",
        "/static/%2e%2e/parts.py",
        "/static/..%2fparts.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/index.html%00",
        "/static/",
        "/static",
        "/openapi.json",
        "/docs",
    ],
)
async def test_other_files_are_not_served(page: Served, path: str) -> None:
    text = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{page.access.port}\r\nConnection: close\r\n"
    text += f"Cookie: {page.access.cookie}={page.access.token}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", page.access.port)
    writer.write(text.encode())
    answer = await reader.read()
    writer.close()
    assert b" 404 " in answer.splitlines()[0]


async def test_head_has_no_body(page: Served) -> None:
    answer = await ask(page, method="HEAD")
    assert (answer.status_code, answer.content) == (200, b"")


def test_it_listens_on_loopback_only() -> None:
    with listen(0) as listener:
        assert listener.family == socket.AF_INET
        assert listener.getsockname()[0] == "127.0.0.1"
