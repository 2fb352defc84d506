"""Mailboxes: who is told of what, once, in order and within bounds."""

import asyncio
import json

from tests.support.fake_gateway import FakeGateway
from tests.support.waiting import until, within
from thoughtgate.surface.mailbox import CHANGED, MOST, MOST_BYTES, Changes, Mailbox

TOOLS = CHANGED["tools"]


async def test_many_changes_of_a_list_are_told_once() -> None:
    gateway = FakeGateway(("a",))
    reader = Changes(gateway).join("a").attach()
    gateway.add("x").add("y").offer("name", "p")
    assert await within(reader.take(5)) == [TOOLS, CHANGED["prompts"]]
    assert await reader.take(0.001) == []


async def test_a_mailbox_hears_of_its_own_domain_only() -> None:
    gateway = FakeGateway(("a",))
    reader = Changes(gateway).join("b").attach()
    gateway.add("x")
    assert await reader.take(0.001) == []


async def test_only_lists_that_were_asked_for_are_told() -> None:
    gateway = FakeGateway(("a",))
    reader = Changes(gateway).join("a", {"prompts": b"p"}).attach()
    gateway.add("x").offer("uri", "r:x")
    assert await reader.take(0.001) == []
    gateway.offer("name", "p")
    assert await within(reader.take(5)) == [b"p"]


async def test_what_nobody_took_is_there_for_the_next_reader() -> None:
    mailbox = Mailbox("a")
    older = mailbox.attach()
    older.end()
    mailbox.note("tools")
    mailbox.post(b"1")
    assert await within(older.take(5)) is None
    assert await within(mailbox.attach().take(5)) == [TOOLS, b"1"]


async def test_a_newer_reader_ends_the_older_one() -> None:
    mailbox = Mailbox("a")
    older = mailbox.attach()
    waiting = asyncio.create_task(older.take(None))
    await asyncio.sleep(0)
    newer = mailbox.attach()
    assert await within(waiting) is None
    mailbox.post(b"1")
    assert await within(newer.take(5)) == [b"1"]


async def test_a_full_mailbox_drops_the_oldest_and_counts_them() -> None:
    mailbox = Mailbox("a")
    for number in range(MOST + 10):
        mailbox.post(b"%d" % number)
    assert mailbox.dropped == 10
    frames = await within(mailbox.attach().take(5))
    assert frames is not None
    assert (len(frames), frames[0]) == (MOST, b"10")
    for _ in range(3):
        mailbox.post(b"x" * (MOST_BYTES // 2))
    assert mailbox.dropped == 11


async def test_what_was_not_taken_can_be_withdrawn() -> None:
    mailbox = Mailbox("a")
    mailbox.post(b"1")
    assert mailbox.withdraw(b"1")
    assert not mailbox.withdraw(b"1")
    assert await mailbox.attach().take(0.001) == []


async def test_somebody_who_comes_in_time_is_waited_for() -> None:
    mailbox = Mailbox("a")
    assert not await mailbox.attended(0.001)
    waiting = asyncio.create_task(mailbox.attended(5))
    await asyncio.sleep(0)
    reader = mailbox.attach()
    assert await within(waiting)
    reader.end()
    assert not await mailbox.attended(0.001)


async def test_closing_ends_every_reader_and_stops_the_watch() -> None:
    gateway = FakeGateway(("a",))
    changes = Changes(gateway)
    waits = [asyncio.create_task(changes.join("a").attach().take(None)) for _ in range(2)]
    await asyncio.sleep(0)
    changes.close()
    changes.close()
    assert await within(asyncio.gather(*waits)) == [None, None]
    assert gateway.watchers == 0
    late = changes.join("a")
    late.post(b"1")
    assert await within(late.attach().take(None)) is None
    assert not await late.attended(5)


async def test_a_mailbox_that_was_left_is_not_kept() -> None:
    gateway = FakeGateway(("a",))
    changes = Changes(gateway)
    mailbox = changes.join("a")
    reader = mailbox.attach()
    changes.leave(mailbox)
    changes.leave(mailbox)
    gateway.add("x")
    assert await within(reader.take(None)) is None
    assert mailbox.empty() == []


def test_the_frames_are_notifications() -> None:
    methods = [json.loads(frame)["method"] for frame in CHANGED.values()]
    assert methods == [f"notifications/{name}/list_changed" for name in CHANGED]


async def test_readers_wake_for_what_was_there_before_them() -> None:
    mailbox = Mailbox("a")
    mailbox.post(b"1")
    reader = mailbox.attach()
    await until(reader.wake.is_set)
