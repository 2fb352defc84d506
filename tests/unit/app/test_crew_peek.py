"""Where a connection goes by its first bytes, as far as they have come."""

import pytest

from thoughtgate.app.crew.peek import MOST, Wish, wish

POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"", Wish(None, sure=False)),
        (b"POST /mc", Wish(None, sure=False)),
        (POST, Wish(None, sure=False)),
        (POST + b"\r\n", Wish(None, sure=True)),
        (POST + b"Mcp-Session-Id: 2.abc", Wish(None, sure=False)),
        (POST + b"Mcp-Session-Id: 2.abc\r\n", Wish(2, sure=True)),
        (POST + b"mcp-session-id:5.abc \r\n\r\n{}", Wish(2, sure=True)),
        (POST + b"MCP-SESSION-ID: abc\r\n\r\n", Wish(0, sure=True)),
        (POST + b"x-mcp-session-id: 2.abc\r\n\r\n", Wish(None, sure=True)),
        (POST + b"\r\nmcp-session-id: 2.abc\r\n\r\n", Wish(None, sure=True)),
        (b"GET /mcp/work?a HTTP/1.1\r\nmcp-session-id: 1.a\r\n\r\n", Wish(1, sure=True)),
        (b"GET /api/v1/status HTTP/1.1\r\n", Wish(0, sure=True)),
        (b"GET /healthz HTTP/1.1\r\n", Wish(0, sure=True)),
        (b"GET /mcpx HTTP/1.1\r\n", Wish(0, sure=True)),
        (b"\x16\x03\x01" + bytes(300), Wish(None, sure=False)),
        (b"a" * MOST, Wish(None, sure=True)),
        (POST + b"a: " + b"a" * MOST, Wish(None, sure=True)),
        (POST + b"mcp-session-id: \xff\xfe\r\n\r\n", Wish(None, sure=True)),
    ],
    ids=range(18),
)
def test_a_head_leads_to_the_worker_that_it_names(head: bytes, found: Wish) -> None:
    assert wish(head, 3) == found
