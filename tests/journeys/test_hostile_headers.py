"""What a client sends with its requests stays here: servers get their own headers, and ours."""

from pathlib import Path

import pytest

from tests.support.raw_clients import RawPost
from tests.support.raw_gateway import raw_gateway
from thoughtgate.testing.fake_http import fake_http

PRIVATE = {
    "authorization": "Bearer canary",
    "proxy-authorization": "Basic canary",
    "cookie": "session=canary",
    "x-api-key": "canary",
    "last-event-id": "canary",
    "forwarded": "for=canary",
    "x-forwarded-for": "canary",
    "mcp-param-region": "canary",
}


class Chatty(RawPost):
    """A client that tells everything it knows with every request."""

    def _headers(self, method: str, name: str | None) -> list[str]:
        told = [f"{header}: {value}" for header, value in PRIVATE.items()]
        return [*super()._headers(method, name), *told]


@pytest.mark.parametrize("spoken", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_no_header_of_a_client_reaches_a_server(
    tmp_path: Path, era: str, spoken: str
) -> None:
    async with fake_http() as endpoint:
        config = (
            f'[servers.peer]\nurl = "{endpoint.url}"\nera = "{era}"\n'
            'headers = { x-own = "kept" }\n'
        )
        async with raw_gateway(tmp_path, config) as gateway:
            gateway.discover()
            await gateway.listed("peer")
            client = Chatty(spoken, gateway.port)
            gateway.ending.callback(client.close)
            await client.hello()
            assert (await client.call("peer__echo", '{"n": 1}')).result
        calls = [headers for _, headers, *_ in endpoint.requests]
    assert calls
    assert all(headers["x-own"] == "kept" for headers in calls)
    assert "canary" not in str(endpoint.requests)
