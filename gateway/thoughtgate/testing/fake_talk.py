"""Behaviours of the fake server that talk back: questions, news, and what it knows of a session.

Never answers for the client: what came back is what the tool returns.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.testing.fake_turn import Turn
from thoughtgate.wire import methods


def _structured(value: JsonObject) -> JsonObject:
    return {"content": [], "structuredContent": value}


async def ask(turn: Turn, arguments: JsonObject) -> None:
    """Send the request `method` with `params` on the call's stream; return what came back."""
    answer = await turn.ask(str(arguments["method"]), arguments.get("params", {}))
    await turn.reply(_structured(dict(answer)))


async def ask_outside(turn: Turn, arguments: JsonObject) -> None:
    """Do the same on the session's standing stream, while the call runs."""
    standing = await turn.server.standing(turn.session)
    answer = await turn.server.ask(str(arguments["method"]), standing, arguments.get("params", {}))
    await turn.reply(_structured(dict(answer)))


async def ask_later(turn: Turn, arguments: JsonObject) -> None:
    """Answer the call first, then ask on the standing stream; `later` returns what came back."""
    server, method = turn.server, str(arguments["method"])
    standing = await server.standing(turn.session)

    async def asking() -> None:
        server.later.append(await server.ask(method, standing, arguments.get("params", {})))

    await turn.reply({"content": []})
    task = asyncio.get_running_loop().create_task(asking())
    server.background.add(task)
    task.add_done_callback(server.background.discard)


async def later(turn: Turn, arguments: JsonObject) -> None:
    """Return the answers to questions that were asked outside of calls."""
    await turn.reply(_structured({"answers": list(turn.server.later)}))


async def take_back(turn: Turn, arguments: JsonObject) -> None:
    """Ask, take the question back at once, and answer without waiting."""
    id_ = await turn.server.ask_only(str(arguments["method"]), turn.out)
    await turn.notify(methods.CANCELLED, {"requestId": id_})
    await turn.reply({"content": []})


async def announce(turn: Turn, arguments: JsonObject) -> None:
    """Send the notification `method` with `params`, on the standing stream if `outside`."""
    method, params = str(arguments["method"]), arguments.get("params", {})
    if arguments.get("outside"):
        await turn.server.announce(await turn.server.standing(turn.session), method, params)
    else:
        await turn.notify(method, params)
    await turn.reply({"content": []})


async def update(turn: Turn, arguments: JsonObject) -> None:
    """Tell everybody who follows the resource `uri`, or what holds it, of a change."""
    await turn.server.update(str(arguments["uri"]), str(arguments.get("follows", "")))
    await turn.reply({"content": []})


async def remember(turn: Turn, arguments: JsonObject) -> None:
    """Keep the arguments for this session; return those that were kept before."""
    before = turn.server.memory.get(turn.session, {})
    turn.server.memory[turn.session] = arguments
    await turn.reply(_structured(before))


async def greeting(turn: Turn, arguments: JsonObject) -> None:
    """Return the params of this session's `initialize`, or the envelope of this request."""
    said = turn.meta if turn.era is Era.STATELESS else turn.server.greetings.get(turn.session, {})
    await turn.reply(_structured(dict(said)))


async def want_input(turn: Turn, arguments: JsonObject) -> None:
    """Ask for `requests` with `state` in the way of the stateless era; then return what came."""
    params = turn.request.params
    if "inputResponses" in params:
        came = {name: value for name, value in params.items() if name != "_meta"}
        await turn.reply(_structured(came))
        return
    wanted = {"resultType": "input_required", "inputRequests": arguments.get("requests", {})}
    if "state" in arguments:
        wanted["requestState"] = arguments["state"]
    await turn.reply(wanted)


TALKING: Mapping[str, Callable[[Turn, JsonObject], Awaitable[None]]] = {
    behave.__name__: behave
    for behave in (
        ask, ask_outside, ask_later, later, take_back, announce, update, remember, greeting,
        want_input,
    )
}  # fmt: skip
