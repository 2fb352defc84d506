"""The MCP face over the real gateway: what its stages decide reaches the client."""

from mcp import Client

from tests.support.mcp_faces import serving
from tests.support.waiting import until
from thoughtgate.calls.gateway import Gateway
from thoughtgate.calls.path import Equipment
from thoughtgate.catalog import admit
from thoughtgate.core.domains import Domain
from thoughtgate.core.json import JsonValue
from thoughtgate.testing.recorder import ListAuditLog
from thoughtgate.testing.sender import ScriptedSender
from thoughtgate.testing.values import make_definition, make_listing, make_server

BOOK = make_definition(
    "book", inputSchema={"type": "object", "properties": {"seat": {"type": "integer"}}}
)


def offer(gateway: Gateway, *tools: JsonValue) -> None:
    server = make_server("air")
    listing = make_listing("air", *tools)
    gateway.update(admit(listing, server=server, effects={}, reject=lambda schema: None), server)


async def test_a_stage_s_report_reaches_the_client_and_the_tool_is_not_called() -> None:
    sender, audit = ScriptedSender(), ListAuditLog()
    gateway = Gateway(Equipment(sender=sender, audit=audit), domains=[Domain(name="default")])
    offer(gateway, BOOK)
    async with serving(gateway) as url:
        for mode in ("legacy", "auto"):
            async with Client(f"{url}/mcp", mode=mode) as client:
                (tool,) = (await client.list_tools()).tools
                assert tool.name == "air__book"
                bad = await client.call_tool("air__book", {"seat": "3"})
                assert bad.is_error
                assert bad.structured_content is not None
                assert bad.structured_content["problems"][0]["pointer"] == "/seat"
                assert not (await client.call_tool("air__book", {"seat": 3})).is_error
    assert [call.arguments for call in sender.sent] == [{"seat": 3}] * 2
    assert [row.outcome for row in audit.rows] == ["invalid_arguments", "ok"] * 2


async def test_a_tool_that_appears_is_told_and_listed() -> None:
    gateway = Gateway(
        Equipment(sender=ScriptedSender(), audit=ListAuditLog()), domains=[Domain(name="default")]
    )
    told: list[str] = []

    async def note(message: object) -> None:
        told.append(type(message).__name__)

    async with (
        serving(gateway) as url,
        Client(f"{url}/mcp", mode="legacy", message_handler=note) as client,
    ):
        assert (await client.list_tools()).tools == []
        offer(gateway, BOOK)
        await until(lambda: "ToolListChangedNotification" in told)
        assert [tool.name for tool in (await client.list_tools()).tools] == ["air__book"]
