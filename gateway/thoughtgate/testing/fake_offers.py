"""What the fake server offers beside tools, and who follows which of its resources.

Never holds anything but text.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from thoughtgate.core.json import JsonObject
from thoughtgate.testing.fake_turn import Turn
from thoughtgate.wire import codes, methods

OFFERED: Final[JsonObject] = {
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "extensions": {"example.org/x": {"on": True}},
}
"""What it declares beside its tools."""

_PROMPTS = ({"name": "greet", "arguments": [{"name": "who"}], "x-unknown": [1]}, {"name": "part"})
_RESOURCES = ({"uri": "mem://one", "name": "one", "x-unknown": {}}, {"uri": "mem://two"})
_TEMPLATES = ({"uriTemplate": "mem://{id}", "name": "any"},)


class Followed:
    """Who follows what: sessions by their subscriptions, requests by what they listen for."""

    def __init__(self) -> None:
        self.uris: dict[str, set[str]] = {}
        self.listening: list[Turn] = []

    def change(self, session: str, uri: str, *, following: bool) -> None:
        """Add a subscription of a session, or take it away."""
        mine = self.uris.setdefault(session, set())
        if following:
            mine.add(uri)
        else:
            mine.discard(uri)

    def sessions(self, uri: str) -> list[str]:
        """Return the sessions that follow a resource."""
        return [session for session, uris in self.uris.items() if uri in uris]

    def turns(self, uri: str) -> list[Turn]:
        """Return the requests that listen for a resource."""
        open_ = [turn for turn in self.listening if not turn.cancelled.is_set()]
        return [turn for turn in open_ if uri in self.wanted(turn)]

    def wanted(self, turn: Turn) -> list[str]:
        """Return the resources that a request listens for."""
        return list(turn.request.params["notifications"].get("resourceSubscriptions", ()))


async def _list_prompts(turn: Turn) -> None:
    if turn.server.script.broken_prompts:
        await turn.fail(codes.INTERNAL_ERROR, "the prompts are lost")
        return
    await turn.reply({"prompts": list(_PROMPTS)})


async def _list_resources(turn: Turn) -> None:
    await turn.reply({"resources": list(_RESOURCES)})


async def _list_templates(turn: Turn) -> None:
    await turn.reply({"resourceTemplates": list(_TEMPLATES)})


async def _get_prompt(turn: Turn) -> None:
    await turn.reply({"messages": [], "asked": _without_meta(turn)})


async def _read_resource(turn: Turn) -> None:
    uri = turn.request.params["uri"]
    await turn.reply({"contents": [{"uri": uri, "text": "x"}], "asked": _without_meta(turn)})


async def _complete(turn: Turn) -> None:
    await turn.reply({"completion": {"values": ["a"]}, "asked": _without_meta(turn)})


async def _foreign(turn: Turn) -> None:
    await turn.reply({"asked": _without_meta(turn)})


def _without_meta(turn: Turn) -> dict[str, Any]:
    return {name: value for name, value in turn.request.params.items() if name != "_meta"}


OFFERS: Final[Mapping[str, Callable[[Turn], Awaitable[None]]]] = {
    methods.PROMPTS_LIST: _list_prompts,
    methods.PROMPTS_GET: _get_prompt,
    methods.RESOURCES_LIST: _list_resources,
    methods.RESOURCES_READ: _read_resource,
    methods.TEMPLATES_LIST: _list_templates,
    methods.COMPLETE: _complete,
    "example.org/do": _foreign,
}
"""How each of them is served."""
