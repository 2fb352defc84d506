"""The small parts of the room: pauses, URLs, salvage, local tools, who carries what."""

import asyncio
import os
import random
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.callers import Client as Caller
from tests.support.children import alive
from tests.support.upstreams import PYTHON_PATH, fake_stdio, make_call, rig
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Notice, NoticeKind, Result
from thoughtgate.core.errors import (
    UnknownTarget,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import LocalTransport, Server, StdioTransport, UpstreamState
from thoughtgate.upstream import child
from thoughtgate.upstream.breaker import Backoff, Breaker
from thoughtgate.upstream.child import Child, child_environment
from thoughtgate.upstream.http_rules import server_headers, target
from thoughtgate.upstream.local import LocalTool, LocalUpstream
from thoughtgate.upstream.ports import Counts
from thoughtgate.upstream.waiting import ROOM, ROOM_BYTES, Waiter
from thoughtgate.wire.messages import BadMessage, Reply, decode
from thoughtgate.wire.results import make_result
from thoughtgate.wire.salvage import salvage_id


def test_pauses_double_up_to_a_cap_and_are_spread() -> None:
    backoff = Backoff(first=1.0, longest=8.0, give_up=None)
    for seed in range(20):
        breaker = Breaker(backoff, random.Random(seed))
        pauses = []
        for _ in range(6):
            breaker.failed(100.0)
            pauses.append(breaker.pause(100.0))
        for pause, nominal in zip(pauses, (1, 2, 4, 8, 8, 8), strict=True):
            assert nominal / 2 <= pause <= nominal


def test_a_breaker_opens_only_beyond_what_is_tolerated_and_closes_on_success() -> None:
    breaker = Breaker(Backoff(give_up=3), random.Random(1))
    breaker.failed(0.0, tolerated=1)
    assert breaker.pause(0.0) == 0.0
    breaker.failed(0.0, tolerated=1)
    assert breaker.pause(0.0) > 0.0
    breaker.failed(0.0)
    given_up = breaker.given_up
    breaker.succeeded()
    assert (given_up, breaker.given_up, breaker.pause(0.0)) == (True, False, 0.0)


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("http://a.example", "http://a.example:80", "/"),
        ("https://a.example/x?y=1#z", "https://a.example:443", "/x?y=1"),
        ("http://[::1]:8080/mcp", "http://[::1]:8080", "/mcp"),
    ],
)
def test_a_url_is_an_origin_and_a_path(url: str, origin: str, path: str) -> None:
    where = target(url)
    assert (where.origin, where.path) == (origin, path)


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":4,"result":{"a":NaN}}', 4),
        (b'{"jsonrpc":"2.0","result":{"a":1,"a":2},"id":"x"}', "x"),
        (b'{"jsonrpc":"2.0","id":5,"result":{"t":"\xff"}}', 5),
        (b'{"jsonrpc":"2.0","id":6,"result":' + b"[" * 5000 + b"]" * 5000 + b"}", 6),
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":' + b"1" * 9000 + b"}}", 7),
        (b'{"jsonrpc":"2.0","id":8,"result":[]}', 8),
        (b'{"method":"x","id":9,"params":{"a":NaN}}', None),
        (b'{"half', None),
        (b'{"id":true,"result":NaN}', None),
    ],
)
def test_a_broken_reply_still_says_whose_it_is(line: bytes, id_: object) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(line)
    assert salvage_id(line, caught.value) == id_


async def answer(call: Call) -> Result:
    return Result(raw=make_result(text=f"hello {call.arguments['name']}"))


async def sleepy(call: Call) -> Result:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def impatient(call: Call) -> Result:
    raise TimeoutError


LOCAL = LocalUpstream(
    "ours",
    {
        name: LocalTool(definition={"name": name}, handler=handler)
        for name, handler in (("greet", answer), ("sleep", sleepy), ("impatient", impatient))
    },
)
OURS = Server(name="ours", transport=LocalTransport())


async def test_local_tools_are_listed_and_called_like_others() -> None:
    async with rig(OURS, local={"ours": LOCAL}) as made:
        listing = await within(made.upstreams.discover("ours"))
        assert [tool["name"] for tool in listing.tools] == ["greet", "sleep", "impatient"]
        assert made.listings == [listing]
        call = make_call("greet", {"name": "you"}, server="ours")
        assert b"hello you" in (await within(made.upstreams.send(call))).raw
        with pytest.raises(UnknownTarget):
            await within(made.upstreams.send(make_call("gone", server="ours")))


async def test_a_local_tool_has_its_time_and_no_other_timeout_is_taken_for_it() -> None:
    with pytest.raises(UpstreamTimeout):
        await within(LOCAL.send(make_call("sleep", server="ours", timeout=0.05)))
    with pytest.raises(TimeoutError):
        await within(LOCAL.send(make_call("impatient", server="ours")))


async def test_a_disabled_server_is_neither_started_nor_asked() -> None:
    async with rig(fake_stdio(enabled=False)) as made:
        assert made.upstreams.statuses()[0].state is UpstreamState.DISABLED
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
        assert "enable" in caught.value.message
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("nobody"))


async def test_a_server_starts_at_its_first_use_and_an_unchanged_one_is_left_alone() -> None:
    server = fake_stdio()
    async with rig(server) as made:
        assert made.upstreams.statuses()[0].state is UpstreamState.IDLE
        await within(made.upstreams.discover("peer"))
        await within(made.upstreams.apply([server, OURS]))
        assert [status.state for status in made.upstreams.statuses()] == [UpstreamState.READY] * 2
        assert len(made.listings) == 1
        await within(made.upstreams.discover("peer"))
        assert len(made.listings) == 2


async def test_one_bad_server_keeps_no_other_from_being_listed() -> None:
    bad = fake_stdio("--exit", "1")
    good = Server(name="good", transport=fake_stdio().transport)
    async with rig(bad, good) as made:
        found = await within(
            asyncio.gather(
                made.upstreams.discover("peer"),
                made.upstreams.discover("good"),
                return_exceptions=True,
            )
        )
        assert isinstance(found[0], UpstreamUnreachable)
        assert made.listings[-1].server == "good"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
@pytest.mark.parametrize(
    ("options", "launcher"), [(("--ignore-eof",), ()), ((), ("sh", "-c", '"$@"; true', "sh"))]
)
async def test_a_child_does_not_outlive_a_gateway_that_is_killed(
    options: tuple[str, ...], launcher: tuple[str, ...], tmp_path: Path
) -> None:
    """The kernel tells the child; what a launcher started learns it from the end of its input."""
    program = (
        "import asyncio\n"
        "from dataclasses import replace\n"
        "from tests.support.upstreams import fake_stdio, rig\n"
        "async def main():\n"
        f"    server = fake_stdio(*{options!r})\n"
        f"    argv = {launcher!r} + server.transport.argv\n"
        "    server = replace(server, transport=replace(server.transport, argv=argv))\n"
        "    async with rig(server) as made:\n"
        "        pid = await made.call('pid')\n"
        f"        open({str(tmp_path / 'pid')!r}, 'w').write(str(pid['pid']))\n"
        "        await asyncio.get_running_loop().create_future()\n"
        "asyncio.run(main())\n"
    )
    gateway = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        stderr=subprocess.DEVNULL,
    )
    try:
        written = tmp_path / "pid"
        await until(lambda: written.exists() and written.read_text(encoding="utf-8"), 20.0)
    finally:
        gateway.kill()
        await within(gateway.wait())
    child = int(written.read_text(encoding="utf-8"))
    await until(lambda: not alive(child))


@pytest.mark.skipif(sys.platform != "linux", reason="only there a child is started by launch.py")
async def test_a_child_has_the_limit_of_open_files_that_the_gateway_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gateway raises its own for its clients; programs that use select() mean the usual one."""
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 7
    monkeypatch.setattr(child, "_FILES", usual)
    lines: list[bytes] = []
    one = Child(lines.append, cap=1000)
    await one.start(StdioTransport(argv=("sh", "-c", "ulimit -n")), os.environ)
    await within(asyncio.shield(one.ended))
    await within(one.stop())
    assert lines == [b"%d" % usual]


async def test_a_watcher_that_fails_does_not_leave_callers_waiting() -> None:
    async with rig(fake_stdio()) as made:
        made.clumsy = True
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
        assert "internal" in caught.value.message
        assert made.statuses[-1].state is UpstreamState.FAILED
        made.clumsy = False
        assert (await within(made.upstreams.discover("peer"))).tools


def test_a_servers_headers_are_its_own_and_not_the_connections() -> None:
    sent = server_headers({"X-Key": "k", "Host": "evil", "Accept-Encoding": "gzip", "TE": "x"})
    assert sent == {"user-agent": "thoughtgate", "x-key": "k"}


def test_our_own_commands_are_found_by_name_also_when_they_are_not_on_the_path() -> None:
    own = str(Path(sys.executable).parent)
    assert child_environment({}, {"PATH": "/usr/bin"})["PATH"] == f"/usr/bin:{own}"
    assert child_environment({}, {})["PATH"].endswith(f":{own}")
    assert child_environment({"PATH": "/mine"}, {"PATH": "/usr/bin"})["PATH"] == "/mine"


@pytest.mark.parametrize(
    ("size", "told"),
    [(1, ROOM), (ROOM_BYTES // 4, 4), (ROOM_BYTES * 2, 1)],
)
async def test_what_waits_for_a_slow_caller_is_bounded_by_number_and_by_bytes(
    size: int, told: int
) -> None:
    """Two hundred and fifty-six notifications of thirty-two megabytes would be eight gigabytes."""
    caller, counts = Caller(), Counts()
    waiter = Waiter(replace(make_call("x"), listener=caller), counts)
    for number in range(300):
        waiter.notify(Notice(kind=NoticeKind.LOG, params={"data": number}), size)
    waiter.answer(Reply(id=1, result=b"{}", value={}))
    assert (await within(waiter.outcome())).result == b"{}"
    assert [notice.params["data"] for notice in caller.notices] == [*range(300 - told, 300)]
    assert counts.overflow == 300 - told
