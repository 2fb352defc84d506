"""The memory of the data server's process: whatever a statement makes, it has an end."""

from pathlib import Path

from mcp import Client
from mcp_types import TextContent

from tests.support.tool_servers import http_server
from tests.support.waiting import within

GIANT = "SELECT repeat('x', 3000000000) AS x"


async def test_a_text_of_gigabytes_is_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("a\n1\n2\n", encoding="utf-8")
    options = ("--root", str(tmp_path), "--memory-mb", "64")
    async with http_server("data", *options) as url, Client(url) as client:
        asked = {"source": "few.csv", "sql": GIANT}
        refused = await within(client.call_tool("query", asked))
        assert refused.is_error
        assert isinstance(refused.content[0], TextContent)
        assert "more memory than is allowed" in refused.content[0].text
        asked["sql"] = "SELECT sum(a) AS s FROM few"
        answer = await within(client.call_tool("query", asked))
        assert not answer.is_error
