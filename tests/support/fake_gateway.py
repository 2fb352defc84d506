"""A gateway without a path: what it serves are functions, views are built from definitions."""

from collections.abc import Awaitable, Callable, Mapping

from thoughtgate.catalog import Part, merge
from thoughtgate.core.calls import Call, Listener, Notice, NoticeKind, Result, ToolName
from thoughtgate.core.domains import DEFAULT_DOMAIN, Domain
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.servers import Era, Listing, Server, StdioTransport
from thoughtgate.core.tools import Kind, Tool
from thoughtgate.offers import admit_offers
from thoughtgate.views import View, build
from thoughtgate.wire.results import make_result

Handler = Callable[[Call], Awaitable[Result]]
Changed = frozenset[tuple[str, str]]

_LISTS = {"name": "prompts", "uri": "resources", "uriTemplate": "resources"}


def done(text: str = "done", **fields: object) -> Result:
    return Result(raw=make_result(text=text, **fields))  # type: ignore[arg-type]  # fields of make_result


async def echo(call: Call) -> Result:
    return done(structured=dict(call.arguments))


class FakeGateway:
    """Serves what it was given in each of its domains, and keeps what it was told.

    Tools are called by name; for all else `handlers` has a function by (kind, name).
    """

    def __init__(self, domains: tuple[str, ...] = (DEFAULT_DOMAIN, "other")) -> None:
        self.calls: list[Call] = []
        self.handlers: dict[str | tuple[Kind, str], Handler] = {}
        self.told: list[tuple[str, str, JsonObject]] = []
        self.left: list[Listener] = []
        self.left_sessions: list[str] = []
        self.extensions: JsonObject = {}
        self._shown: dict[str, JsonObject] = {}
        self._offers: dict[str, list[JsonObject]] = {"name": [], "uri": [], "uriTemplate": []}
        self._domains = domains
        self._views: dict[str, View] = {}
        self._watchers: list[Callable[[Changed], None]] = []

    def add(self, name: str, handler: Handler = echo, **fields: object) -> "FakeGateway":
        self.handlers[name] = handler
        self._shown[name] = {"name": name, "inputSchema": {"type": "object"}, **fields}
        self._change("tools")
        return self

    def offer(self, key: str, value: str, handler: Handler = echo) -> "FakeGateway":
        """Offer a prompt (`name`), a resource (`uri`) or a template (`uriTemplate`)."""
        self._offers[key].append({"name": "x", key: value})
        kind = Kind.PROMPT if key == "name" else Kind.RESOURCE
        self.handlers[kind, value] = handler
        self._change(_LISTS[key])
        return self

    @property
    def domains(self) -> Mapping[str, Domain]:
        return {name: self.view(name).domain for name in reversed(self._domains)}

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    async def call(self, call: Call) -> Result:
        self.calls.append(call)
        target = call.target
        if isinstance(target, ToolName):
            handler, kind = self.handlers.get(target.name), "tool"
        else:
            assert hasattr(target, "kind")
            handler, kind = self.handlers.get((target.kind, target.name)), str(target.kind)
        if handler is None or call.domain not in self._domains:
            raise UnknownTarget(name=target.name, kind=kind)
        return await handler(call)

    def view(self, domain: str) -> View:
        if domain not in self._domains:
            raise UnknownTarget(name=domain)
        if domain not in self._views:
            server = Server(name="s", transport=StdioTransport(argv=("s",)))
            listing = Listing(
                server="s",
                tools=(),
                era=Era.STATELESS,
                version="",
                server_info={},
                prompts=tuple(self._offers["name"]),
                resources=tuple(self._offers["uri"]),
                templates=tuple(self._offers["uriTemplate"]),
                capabilities={"extensions": self.extensions},
            )
            tools = tuple(map(_tool, self._shown.values()))
            part = Part(server="s", tools=tools, offers=admit_offers(listing, server)[0])
            text = f"use {domain} well"
            rules = Domain(name=domain, instructions=text, prefixed=False, max_tools=None)
            self._views[domain] = build(rules, merge((part,)))
        return self._views[domain]

    def watch(self, callback: Callable[[Changed], None], /) -> Callable[[], None]:
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    def leave(self, listener: Listener) -> None:
        self.left.append(listener)

    def leave_session(self, session_id: str) -> None:
        self.left_sessions.append(session_id)

    def tell(self, session_id: str, method: str, params: JsonObject) -> None:
        self.told.append((session_id, method, params))

    def _change(self, list_: str) -> None:
        self._views.clear()
        for watcher in list(self._watchers):
            watcher(frozenset((domain, list_) for domain in self._domains))


async def talk(call: Call) -> Result:
    """Report progress once, log at two levels, then answer."""
    progress = {"progress": 1, "total": 2, "message": "half"}
    await call.listener.notify(Notice(kind=NoticeKind.PROGRESS, params=progress))
    for level in ("debug", "warning"):
        params = {"level": level, "logger": "talk", "data": {"level": level}}
        await call.listener.notify(Notice(kind=NoticeKind.LOG, params=params))
    return done()


def _tool(shown: JsonObject) -> Tool:
    return Tool(
        server="s",
        name=shown["name"],
        definition=shown,
        digest=digest(shown),
        input_schema=shown["inputSchema"],
    )
