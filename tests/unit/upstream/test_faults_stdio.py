"""Faults of a child: what its callers see, and what is left of it."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.children import alive, children
from tests.support.upstreams import Heard, fake_stdio, rig
from tests.support.waiting import until, within
from thoughtgate.core.calls import Session
from thoughtgate.core.errors import (
    UpstreamGarbled,
    UpstreamLost,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, Server, StdioTransport, UpstreamState
from thoughtgate.core.tools import Effect
from thoughtgate.upstream.breaker import Backoff
from thoughtgate.upstream.child import Patience

EXTENSION: JsonObject = {"extensions": {"example.org/tasks": {}}}
ERAS = pytest.mark.parametrize("era", list(Era))


@ERAS
async def test_a_crash_fails_every_pending_call_at_once_and_says_why(era: Era) -> None:
    async with rig(fake_stdio(era=era)) as made:
        await made.call("echo")
        waiting = [asyncio.ensure_future(made.send("hang", timeout=60)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(UpstreamLost) as caught:
            await within(made.send("crash", {"code": 7, "words": "\x1b[31mout of\x07 cheese\n"}))
        for call in waiting:
            with pytest.raises(UpstreamLost):
                await within(call, 1.0)
    assert "peer" in caught.value.message
    assert "code 7" in caught.value.message
    assert "out of cheese" in caught.value.message
    assert "\x1b" not in caught.value.message


async def test_the_last_words_of_a_child_keep_its_secrets() -> None:
    words = "the token canary-9 of canary-99 is refused, debug=1\n"
    server = fake_stdio(env={"TOKEN": "canary-9", "USER_KEY": "canary-99", "DEBUG": "1"})
    async with rig(server) as made:
        with pytest.raises(UpstreamLost) as caught:
            await within(made.send("crash", {"code": 7, "words": words}))
    assert "the token *** of *** is refused, debug=1" in caught.value.message


async def test_a_child_that_is_killed_is_named_by_its_signal_and_replaced() -> None:
    async with rig(fake_stdio()) as made:
        await made.call("echo")
        with pytest.raises(UpstreamLost) as caught:
            await within(made.send("crash", {"code": -signal.SIGKILL}))
        assert "SIGKILL" in caught.value.message
        assert await made.call("echo", {"back": True}) == {"back": True}


@pytest.mark.parametrize(("effect", "sent"), [(Effect.WRITE, 1), (Effect.READ, 2)])
async def test_a_lost_write_is_never_sent_again_and_a_lost_read_once(
    effect: Effect, sent: int, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    async with rig(fake_stdio("--journal", str(log))) as made:
        await made.call("echo")
        with pytest.raises(UpstreamLost):
            await within(made.send("crash", effect=effect))
    assert log.read_text(encoding="utf-8").splitlines().count("crash") == sent


@pytest.mark.parametrize("then", ["exit", "hang"])
async def test_a_read_that_was_lost_is_not_said_to_be_unsent_when_it_cannot_be_sent_again(
    tmp_path: Path, then: str
) -> None:
    plan = tmp_path / "plan"
    plan.write_text("[]", encoding="utf-8")
    async with rig(fake_stdio("--faults", str(plan))) as made:
        await made.call("echo")
        plan.write_text(f'[{{"name":"{then}","on":"start"}}]', encoding="utf-8")
        with pytest.raises((UpstreamLost, UpstreamTimeout)):
            await within(made.send("crash", effect=Effect.READ, timeout=2.0))


@ERAS
async def test_a_hanging_call_times_out_alone_and_its_late_reply_is_dropped(era: Era) -> None:
    async with rig(fake_stdio(era=era)) as made:
        await made.call("echo")
        with pytest.raises(UpstreamTimeout):
            await within(made.send("stubborn", timeout=0.05))
        assert await made.call("echo", {"still": 1}) == {"still": 1}
        await until(lambda: made.upstreams.counts("peer").late == 1)
        assert made.statuses[-1].state is UpstreamState.READY


async def test_progress_does_not_extend_the_time_of_a_call() -> None:
    async with rig(fake_stdio()) as made:
        await made.call("echo")
        heard = Heard()
        with pytest.raises(UpstreamTimeout):
            await within(made.send("endless", timeout=0.2, listener=heard, wants_progress=True))
    assert heard.notices


async def test_the_first_of_two_replies_counts_and_the_second_is_dropped() -> None:
    async with rig(fake_stdio()) as made:
        result = await within(made.send("twice"))
        assert json.loads(result.raw)["content"][0]["text"] == "first"
        await until(lambda: made.upstreams.counts("peer").late == 1)
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_noise_on_standard_output_is_skipped_and_counted() -> None:
    banner = "Welcome!\r\n\x1b[1mbold\x1b[0m\n\n"
    async with rig(fake_stdio("--banner", banner)) as made:
        assert (await within(made.send("noise"))).raw
        assert made.upstreams.counts("peer").noise == 7
        assert await made.call("echo", {"n": 1}) == {"n": 1}


@pytest.mark.parametrize(
    "kind", ["nan", "duplicate", "deep", "utf8", "surrogate", "digits", "list", "nothing"]
)
async def test_a_broken_result_fails_its_own_call_and_no_other(kind: str) -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        await made.call("echo")
        other = asyncio.ensure_future(made.send("hang"))
        with pytest.raises(UpstreamGarbled):
            await within(made.send("broken", {"kind": kind}))
        assert not other.done()
        assert await made.call("echo", {"n": 1}) == {"n": 1}
        other.cancel()


async def test_lines_of_many_megabytes_come_through() -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        await made.call("echo")
        for size in (132_000, 200 * 1024, 20 << 20):
            result = await within(made.send("big", {"size": size}))
            assert len(result.raw) > size


async def test_a_line_over_the_cap_ends_that_child_and_fails_its_calls() -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        await made.call("echo")
        with pytest.raises(UpstreamLost) as caught:
            await within(made.send("big", {"size": 40 << 20}))
        assert "longer" in caught.value.message
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_a_flood_on_standard_error_blocks_nobody() -> None:
    async with rig(fake_stdio()) as made:
        await made.call("echo")
        await within(made.send("stderr", {"size": 4_000_000}))
        with pytest.raises(UpstreamLost) as caught:
            await within(made.send("crash"))
    assert len(caught.value.message) < 10_000


async def test_a_tool_whose_own_child_reads_standard_input_harms_nobody() -> None:
    async with rig(fake_stdio()) as made:
        await within(made.send("spawn"))
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_cancelling_in_the_same_tick_as_the_reply_harms_nobody() -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        await made.call("echo")
        for round_ in range(300):
            calls = [asyncio.ensure_future(made.send("echo", {"n": n})) for n in range(3)]
            done, pending = await within(asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED))
            for call in [*pending, *done]:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert done, round_
        assert await made.call("echo", {"n": 1}) == {"n": 1}
        await made.upstreams.aclose()
    assert made.statuses[-1].state is UpstreamState.READY


async def test_a_hundred_calls_use_one_child() -> None:
    async with rig(fake_stdio()) as made:
        for n in range(100):
            assert await made.call("echo", {"n": n}) == {"n": n}
        assert len(children()) == 1


async def test_reconnecting_a_hundred_times_leaves_no_zombie() -> None:
    quick = Server(name="peer", transport=StdioTransport(argv=("false",)))
    async with rig(quick, backoff=Backoff(first=0.0, longest=0.0, give_up=100)) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("peer"), 20.0)
        await until(lambda: made.statuses[-1].state is UpstreamState.FAILED, 20.0)
        assert children() == []


async def test_a_storm_of_failures_ends_in_failed_and_a_restart_resets_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with rig(fake_stdio("--exit", "3", "--stderr", "no licence\n")) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("peer"))
        await until(lambda: made.statuses[-1].state is UpstreamState.FAILED)
        assert len([r for r in caplog.records if "attempt" in r.message]) == 5
        assert "no licence" in made.statuses[-1].reason
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.send("echo"))
        assert "given up" in caught.value.message
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.restart("peer"))


async def test_a_slow_start_has_a_time_of_its_own_and_delays_no_other_server() -> None:
    slow = fake_stdio("--deaf", start_timeout=0.4)
    other = Server(name="other", transport=fake_stdio().transport)
    async with rig(slow, other) as made:
        starting = asyncio.ensure_future(made.upstreams.discover("peer"))
        await until(lambda: made.statuses)
        assert made.statuses[0].state is UpstreamState.STARTING
        listing = await within(made.upstreams.discover("other"))
        assert listing.server == "other"
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(starting)
        assert "0.4 seconds" in caught.value.message


async def test_a_call_whose_server_does_not_start_in_time_was_not_sent() -> None:
    async with rig(fake_stdio("--deaf")) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.send("echo", timeout=0.1))


async def test_a_command_that_does_not_exist_is_named() -> None:
    missing = Server(name="peer", transport=StdioTransport(argv=("no-such-command-1",)))
    async with rig(missing) as made:
        with pytest.raises(UpstreamUnreachable) as caught:
            await within(made.upstreams.discover("peer"))
    assert "no-such-command-1" in caught.value.message


async def test_arguments_reach_the_child_without_a_shell(tmp_path: Path) -> None:
    words = ("a;b", "$(touch x)", "&", "|", "c\nd", "`e`", "*")
    script = "import sys, json; open(sys.argv[1], 'w').write(json.dumps(sys.argv[2:]))"
    out = tmp_path / "argv"
    argv = (sys.executable, "-c", script, str(out), *words)
    server = Server(name="peer", transport=StdioTransport(argv=argv, cwd=str(tmp_path)))
    async with rig(server, backoff=Backoff(give_up=1)) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("peer"))
    assert json.loads(out.read_text(encoding="utf-8")) == list(words)
    assert os.listdir(tmp_path) == ["argv"]


async def test_a_child_sees_a_small_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GATEWAY_SECRET", "do not pass on")
    out = tmp_path / "env"
    script = "import sys, os, json; open(sys.argv[1], 'w').write(json.dumps(dict(os.environ)))"
    transport = StdioTransport(argv=(sys.executable, "-c", script, str(out)), env={"MINE": "1"})
    async with rig(Server(name="peer", transport=transport), backoff=Backoff(give_up=1)) as made:
        with pytest.raises(UpstreamUnreachable):
            await within(made.upstreams.discover("peer"))
    seen = json.loads(out.read_text(encoding="utf-8"))
    assert seen["MINE"] == "1"
    assert set(seen) <= {"PATH", "HOME", "LANG", "TMPDIR", "MINE", "LC_CTYPE"}


async def test_a_child_that_ignores_everything_is_killed_with_its_own_children() -> None:
    patience = Patience(eof=0.05, term=0.05, kill=2.0)
    async with rig(fake_stdio("--ignore-eof", "--ignore-term"), patience=patience) as made:
        orphan = (await made.call("orphan"))["pid"]
        assert len(children()) == 1
    assert children() == []
    await until(lambda: not alive(orphan))


async def test_a_removed_server_has_ended_when_apply_returns() -> None:
    async with rig(fake_stdio()) as made:
        await made.call("echo")
        await within(made.upstreams.apply([]))
        assert children() == []
        with pytest.raises(UpstreamUnreachable):
            await within(made.send("echo"))


async def test_a_call_in_flight_ends_on_the_old_connection_when_its_server_changes() -> None:
    async with rig(fake_stdio()) as made:
        await made.call("echo")
        running = asyncio.ensure_future(made.send("progress", {"count": 20_000}))
        await asyncio.sleep(0)
        await within(made.upstreams.apply([fake_stdio("--pages", "2")]))
        assert (await within(running, 20.0)).raw
        assert await made.call("echo", {"new": 1}) == {"new": 1}
        await until(lambda: len(children()) == 1)


async def test_many_first_calls_start_one_child() -> None:
    async with rig(fake_stdio()) as made:
        await within(asyncio.gather(*(made.send("echo") for _ in range(20))))
        assert len(children()) == 1
        assert len(made.listings) == 1


@pytest.mark.parametrize(
    ("options", "era"),
    [
        (("--era", "handshake"), Era.HANDSHAKE),
        (("--era", "stateless"), Era.STATELESS),
        (("--era", "handshake", "--only-initialize"), Era.HANDSHAKE),
        ((), Era.STATELESS),
    ],
)
async def test_an_unknown_era_is_probed(options: tuple[str, ...], era: Era) -> None:
    async with rig(fake_stdio(*options)) as made:
        listing = await within(made.upstreams.discover("peer"))
        assert listing.era is era
        assert await made.call("echo", {"n": 1}) == {"n": 1}


async def test_a_server_that_is_silent_about_the_probe_is_greeted_the_old_way() -> None:
    async with rig(fake_stdio("--era", "handshake", "--silent-probe"), probe=0.1) as made:
        listing = await within(made.upstreams.discover("peer"))
    assert listing.era is Era.HANDSHAKE


async def test_all_pages_are_listed_and_a_repeated_cursor_ends_the_list_with_a_warning() -> None:
    async with rig(fake_stdio("--pages", "4")) as whole, rig(fake_stdio()) as one:
        paged = await within(whole.upstreams.discover("peer"))
        plain = await within(one.upstreams.discover("peer"))
    assert paged.tools == plain.tools
    assert paged.warnings == ()
    assert paged.tools[0]["x-unknown"] == {"kept": [1, None]}
    async with rig(fake_stdio("--pages", "4", "--loop")) as looping:
        looped = await within(looping.upstreams.discover("peer"))
    assert len(looped.tools) == 8
    assert "cursor" in looped.warnings[0]


async def test_an_endless_list_stops_at_the_page_cap_with_a_warning() -> None:
    async with rig(fake_stdio("--pages", "1", "--endless-list")) as made:
        listing = await within(made.upstreams.discover("peer"))
    assert len(listing.tools) == 100
    assert "100 pages" in listing.warnings[0]


@ERAS
async def test_a_change_of_the_tools_is_listed_again(era: Era) -> None:
    async with rig(fake_stdio(era=era)) as made:
        await made.call("echo")
        await within(made.send("change"))
        await until(lambda: "extra0" in made.names())


async def test_a_servers_ping_is_answered_and_its_other_requests_are_refused() -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        assert "code" not in await made.call("ask", {"method": "ping"})
        refused = await made.call("ask", {"method": "sampling/createMessage"})
        assert refused["code"] == -32601
        assert made.upstreams.counts("peer").refused == 1


async def test_a_log_message_that_two_calls_could_have_caused_is_given_to_neither() -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        await made.call("echo")
        heard = Heard()
        await within(made.send("log", listener=heard, log_level="info"))
        assert [params["data"] for params in heard.params] == ["a info"]
        other = asyncio.ensure_future(made.send("hang"))
        await made.call("echo")
        await within(made.send("log", listener=heard, log_level="info"))
        assert len(heard.notices) == 1
        assert made.upstreams.counts("peer").unplaced == 1
        other.cancel()


async def test_progress_without_a_caller_is_counted_and_dropped() -> None:
    async with rig(fake_stdio()) as made:
        heard = Heard()
        await within(made.send("stray_progress", listener=heard, wants_progress=True))
        assert heard.notices == []
        assert made.upstreams.counts("peer").unplaced == 1


async def test_errors_of_both_kinds_come_back_as_they_are() -> None:
    async with rig(fake_stdio()) as made:
        result = await within(made.send("tool_error", {"n": 1}))
        assert result.is_error
        assert json.loads(result.raw)["structuredContent"] == {"n": 1}
        with pytest.raises(UpstreamReplied) as caught:
            await within(made.send("fail", {"code": -32602}))
        assert caught.value.rpc_code == -32602
        assert caught.value.rpc_data == {"why": "asked"}


async def test_a_result_that_asks_for_input_is_not_final_and_comes_back_as_it_is() -> None:
    async with rig(fake_stdio(era=Era.STATELESS)) as made:
        result = await within(made.send("want_input"))
    assert not result.final
    assert json.loads(result.raw) == {"resultType": "input_required", "inputRequests": {}}


async def test_nothing_that_an_old_server_says_of_its_result_makes_it_ask_for_input() -> None:
    async with rig(fake_stdio(era=Era.HANDSHAKE)) as made:
        assert (await within(made.send("want_input"))).final


@pytest.mark.parametrize("kind", ["task", "", 7, {"a": 1}])
async def test_a_result_of_a_kind_that_nobody_knows_fails_its_call(kind: object) -> None:
    """The specification: a kind that is not recognised is invalid; extensions add kinds."""
    async with rig(fake_stdio(era=Era.STATELESS)) as made:
        with pytest.raises(UpstreamGarbled) as caught:
            await within(made.send("typed", {"type": kind}))
        assert "peer" in caught.value.message
        assert (await within(made.send("typed", {"type": "complete"}))).final


async def test_a_kind_of_an_extension_reaches_a_client_that_declared_extensions() -> None:
    able = Session(id="", era=Era.STATELESS, version="", client={}, capabilities=EXTENSION)
    async with rig(fake_stdio(era=Era.STATELESS)) as made:
        result = await within(made.send("typed", {"type": "task"}, session=able))
    assert json.loads(result.raw)["resultType"] == "task"
