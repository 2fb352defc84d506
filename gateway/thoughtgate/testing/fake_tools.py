"""What the fake server's tools do: one misbehaviour each.

Never returns what a tool of the same name would in earnest.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping

from thoughtgate.core.json import JsonObject
from thoughtgate.testing.fake_talk import TALKING
from thoughtgate.testing.fake_turn import Turn
from thoughtgate.testing.fault_strikes import BROKEN
from thoughtgate.testing.faults import BadPlan, read_plan
from thoughtgate.wire import methods
from thoughtgate.wire.messages import encode_reply


def _text(text: str) -> JsonObject:
    return {"content": [{"type": "text", "text": text}]}


async def echo(turn: Turn, arguments: JsonObject) -> None:
    """Return the arguments as structured content."""
    await turn.reply({"content": [], "structuredContent": arguments})


async def read(turn: Turn, arguments: JsonObject) -> None:
    """Return the arguments; it says of itself that it changes nothing."""
    await echo(turn, arguments)


async def write(turn: Turn, arguments: JsonObject) -> None:
    """Return the arguments; it says of itself that it must not run twice."""
    await echo(turn, arguments)


async def set_faults(turn: Turn, arguments: JsonObject) -> None:
    """Let the plan in the arguments hold from now on; see `thoughtgate.testing.faults`."""
    try:
        turn.server.faults.put(read_plan(arguments))
    except BadPlan as error:
        await turn.reply({**_text(str(error)), "isError": True})
    else:
        await turn.reply(_text("set"))


async def tool_error(turn: Turn, arguments: JsonObject) -> None:
    """Fail as a tool does."""
    await turn.reply({**_text("no"), "isError": True, "structuredContent": arguments})


async def fail(turn: Turn, arguments: JsonObject) -> None:
    """Fail as a protocol does, with code and data."""
    await turn.fail(int(arguments.get("code", -32000)), "it failed", {"why": "asked"})


async def progress(turn: Turn, arguments: JsonObject) -> None:
    """Report progress `count` times, then answer."""
    count = int(arguments.get("count", 3))
    for step in range(count):
        await turn.notify(
            methods.PROGRESS,
            {"progressToken": turn.meta.get("progressToken"), "progress": step, "total": count},
        )
    await turn.reply(_text("done"))


async def stray_progress(turn: Turn, arguments: JsonObject) -> None:
    """Report progress under a token that nobody gave."""
    await turn.notify(methods.PROGRESS, {"progressToken": "nobody", "progress": 1})
    await turn.reply(_text("done"))


async def log(turn: Turn, arguments: JsonObject) -> None:
    """Log one message per level of `levels`, then answer."""
    for level in arguments.get("levels", ["info"]):
        await turn.notify(methods.LOG, {"level": level, "data": f"a {level}"})
    await turn.reply(_text("logged"))


async def hang(turn: Turn, arguments: JsonObject) -> None:
    """Answer nothing, ever."""
    await turn.cancelled.wait()


async def stubborn(turn: Turn, arguments: JsonObject) -> None:
    """Answer only after having been cancelled."""
    await turn.cancelled.wait()
    await turn.reply(_text("too late"))


async def endless(turn: Turn, arguments: JsonObject) -> None:
    """Report progress for ever."""
    step = 0
    while not turn.cancelled.is_set():
        step += 1
        token = turn.meta.get("progressToken")
        await turn.notify(methods.PROGRESS, {"progressToken": token, "progress": step})
        await asyncio.sleep(0.001)


async def crash(turn: Turn, arguments: JsonObject) -> None:
    """Break off with exit code or, when negative, signal `code`."""
    sys.stderr.write(str(arguments.get("words", "")))
    sys.stderr.flush()
    turn.out.cut(int(arguments.get("code", 1)))


async def half(turn: Turn, arguments: JsonObject) -> None:
    """Send one progress report, then break off."""
    token = turn.meta.get("progressToken")
    await turn.notify(methods.PROGRESS, {"progressToken": token, "progress": 1})
    turn.out.cut(1)


async def twice(turn: Turn, arguments: JsonObject) -> None:
    """Answer twice."""
    await turn.reply(_text("first"))
    await turn.reply(_text("second"))


async def noise(turn: Turn, arguments: JsonObject) -> None:
    """Write what is no message, then answer."""
    await turn.out.raw(
        b"Server listening...\n\r\n\n\x1b[32mgreen\x1b[0m\n{not json}\n[1,2]\n\xff\xfe\n"
        b"\xef\xbb\xbf"  # a byte order mark before a message that counts
    )
    await turn.reply(_text("heard"))


async def big(turn: Turn, arguments: JsonObject) -> None:
    """Answer with `size` letters."""
    await turn.reply(_text("x" * int(arguments["size"])))


async def typed(turn: Turn, arguments: JsonObject) -> None:
    """Answer with a result that says to be of the type `type`."""
    await turn.reply({**_text("odd"), "resultType": arguments["type"]})


async def broken(turn: Turn, arguments: JsonObject) -> None:
    """Answer with a result that is broken in the way of `kind`."""
    await turn.out.send(encode_reply(turn.request.id, BROKEN[str(arguments["kind"])]))


async def stderr(turn: Turn, arguments: JsonObject) -> None:
    """Write `size` bytes to standard error, then answer."""
    for _ in range(int(arguments["size"]) // 1000):
        sys.stderr.write("e" * 999 + "\n")
    sys.stderr.flush()
    await turn.reply(_text("written"))


async def change(turn: Turn, arguments: JsonObject) -> None:
    """Offer one more tool, say so, and answer."""
    await turn.server.change()
    await turn.reply(_text("changed"))


async def seen(turn: Turn, arguments: JsonObject) -> None:
    """Return every message that came so far."""
    await turn.reply({"content": [], "structuredContent": {"seen": list(turn.server.seen)}})


async def spawn(turn: Turn, arguments: JsonObject) -> None:
    """Run a child that reads the inherited standard input, then answer."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import sys; sys.stdin.read(0)"
    )
    await process.wait()
    await turn.reply(_text("ran"))


async def orphan(turn: Turn, arguments: JsonObject) -> None:
    """Start a child that never ends, and return its process id."""
    process = await asyncio.create_subprocess_exec("sleep", "1000")
    await turn.reply({"content": [], "structuredContent": {"pid": process.pid}})


async def pid(turn: Turn, arguments: JsonObject) -> None:
    """Return the server's process id."""
    await turn.reply({"content": [], "structuredContent": {"pid": os.getpid()}})


Behaviour = Callable[[Turn, JsonObject], Awaitable[None]]

BEHAVIOURS: Mapping[str, Behaviour] = {
    behave.__name__: behave
    for behave in (
        echo, tool_error, fail, progress, stray_progress, log, hang, stubborn, endless, crash,
        half, twice, noise, big, broken, stderr, change, seen, spawn, orphan, pid, read, write,
        set_faults, typed,
    )
} | dict(TALKING)  # fmt: skip

HINTS: Mapping[str, JsonObject] = {
    "read": {"annotations": {"readOnlyHint": True}},
    "write": {"annotations": {"readOnlyHint": False, "idempotentHint": False}},
}
"""What some tools say of themselves."""
