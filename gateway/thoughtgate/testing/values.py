"""Small values for tests: a server, a listing, a tool, a call, each complete with one argument.

Never used outside tests.
"""

from itertools import count

from thoughtgate.core.calls import LOCAL, Call, Notice, Question, Session, Source, ToolName
from thoughtgate.core.errors import NotAsked
from thoughtgate.core.json import JsonObject, JsonValue, digest
from thoughtgate.core.servers import Era, Listing, LocalTransport, Server
from thoughtgate.core.tools import Tool
from thoughtgate.schema.registration import normalise_input

_IDS = count(1)

SESSION = Session(
    id="", era=Era.STATELESS, version="2026-07-28", client={"name": "test", "version": "0"}
)


class Silence:
    """A listener that drops every notification and answers nothing."""

    async def notify(self, notice: Notice) -> None:
        """Drop one notification."""

    async def ask(self, question: Question) -> bytes:
        """Refuse to answer."""
        raise NotAsked(message=f"nobody answers {question.method} here")


def make_server(name: str = "files", **fields: JsonValue) -> Server:
    """Return a server that lives in this process; `fields` are those of `Server`."""
    return Server(name=name, **{"transport": LocalTransport(), **fields})


def make_definition(name: str, **fields: JsonValue) -> JsonObject:
    """Return a tool object that takes any object; `fields` go into it as they are."""
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def make_listing(server: str, *tools: JsonValue) -> Listing:
    """Return a listing; a string stands for a plain definition of that name."""
    definitions = tuple(make_definition(tool) if isinstance(tool, str) else tool for tool in tools)
    return Listing(
        server=server,
        tools=definitions,
        era=Era.STATELESS,
        version="2026-07-28",
        server_info={"name": server, "version": "0"},
    )


def make_tool(server: str = "files", name: str = "read", **fields: JsonValue) -> Tool:
    """Return a tool that takes any object; `fields` are those of `Tool`."""
    definition = fields.pop("definition", None) or make_definition(name)
    defaults: dict[str, JsonValue] = {
        "definition": definition,
        "digest": digest(definition),
        "input_schema": normalise_input(definition.get("inputSchema")),
        "output_schema": definition.get("outputSchema"),
    }
    return Tool(server=server, name=name, **{**defaults, **fields})


def make_call(
    name: str = "files__read", arguments: JsonObject | None = None, **fields: JsonValue
) -> Call:
    """Return a client's call in the default domain; `fields` are those of `Call`."""
    domain = fields.pop("domain", "default")
    defaults: dict[str, JsonValue] = {
        "id": f"call-{next(_IDS)}",
        "target": ToolName(domain=domain, name=name),
        "arguments": {} if arguments is None else arguments,
        "principal": LOCAL,
        "session": SESSION,
        "domain": domain,
        "deadline": float("inf"),
        "listener": Silence(),
        "meta": {},
        "source": Source.CLIENT,
    }
    return Call(**{**defaults, **fields})
