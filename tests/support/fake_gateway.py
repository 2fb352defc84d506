"""A gateway without a path: tools are functions, views are built from their definitions."""

from collections.abc import Awaitable, Callable

from thoughtgate.catalog import Part, merge
from thoughtgate.core.calls import Call, Notice, NoticeKind, Result, ToolName
from thoughtgate.core.domains import DEFAULT_DOMAIN, Domain
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.core.tools import Tool
from thoughtgate.views import View, build
from thoughtgate.wire.results import make_result

Handler = Callable[[Call], Awaitable[Result]]


def done(text: str = "done", **fields: object) -> Result:
    return Result(raw=make_result(text=text, **fields))  # type: ignore[arg-type]  # fields of make_result


async def echo(call: Call) -> Result:
    return done(structured=dict(call.arguments))


class FakeGateway:
    """Serves the tools it was given in each of its domains, and keeps the calls it got."""

    def __init__(self, domains: tuple[str, ...] = (DEFAULT_DOMAIN, "other")) -> None:
        self.calls: list[Call] = []
        self.handlers: dict[str, Handler] = {}
        self._shown: dict[str, JsonObject] = {}
        self._domains = domains
        self._views: dict[str, View] = {}
        self._watchers: list[Callable[[frozenset[str]], None]] = []

    def add(self, name: str, handler: Handler = echo, **fields: object) -> "FakeGateway":
        self.handlers[name] = handler
        self._shown[name] = {"name": name, "inputSchema": {"type": "object"}, **fields}
        self._views.clear()
        for watcher in list(self._watchers):
            watcher(frozenset(self._domains))
        return self

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    async def call(self, call: Call) -> Result:
        self.calls.append(call)
        assert isinstance(call.target, ToolName)
        handler = self.handlers.get(call.target.name)
        if handler is None or call.domain not in self._domains:
            raise UnknownTarget(name=call.target.name)
        return await handler(call)

    def view(self, domain: str) -> View:
        if domain not in self._domains:
            raise UnknownTarget(name=domain)
        if domain not in self._views:
            part = Part(server="s", tools=tuple(map(_tool, self._shown.values())))
            text = f"use {domain} well"
            rules = Domain(name=domain, instructions=text, prefixed=False, max_tools=None)
            self._views[domain] = build(rules, merge((part,)))
        return self._views[domain]

    def watch(self, callback: Callable[[frozenset[str]], None], /) -> Callable[[], None]:
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)


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
