"""Runs that write to the world, killed again and again; what the journal says of them is checked.

Run as a program: `python -m tests.support.journal_kills FOLDER --kills 200`. It prints what was
counted and every broken promise. With `--careless` writes are sent before their intent is safe,
so that the checks have something to find.
"""

import argparse
import asyncio
import json
import os
import random
import select
import signal
import sqlite3
import sys
import traceback
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.journals import make_run
from tests.support.registries import FILE, open_in
from thoughtgate.core.journal import Entry, Event, Level, RunKey, RunStatus
from thoughtgate.registry.journal import JournalLimits, RunFilter, RunJournal

RUNS, STEPS = 12, 6
LONGEST = 0.09
"""Seconds that a process lives at most; every fourth has four times as long."""

WORLD = "world"

# nobody else is alive when a process begins, so a lease need not last
LIMITS = JournalLimits(lease=0.0)


class Worker:
    """One process: takes what an earlier one left, and makes new runs until it is killed."""

    def __init__(self, folder: Path, *, careless: bool) -> None:
        self._folder = folder
        self._careless = careless
        self._world = os.open(folder / WORLD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def work(self, ready: int) -> None:
        """Drive runs for ever; say on `ready` when it begins."""
        registry = open_in(self._folder)
        journal = RunJournal(registry, limits=LIMITS)
        left = await journal.runs(RunFilter(left=True, limit=1000))
        os.write(ready, b".")
        async with asyncio.TaskGroup() as group:
            for place in range(RUNS):
                uid = left[place].run.uid if place < len(left) else None
                group.create_task(self._go_on(journal, place, uid))

    async def _go_on(self, journal: RunJournal, place: int, left: str | None) -> None:
        if left is not None:
            await self._resume(journal, left)
        for number in range(1_000_000):
            key = journal.create(make_run(f"run-{os.getpid()}-{place}-{number}"))
            await self._drive(journal, key, frozenset())

    async def _resume(self, journal: RunJournal, uid: str) -> None:
        taken = await journal.take(uid)
        seen = kinds(taken.entries)
        doubtful = seen["intended"] - seen["done"] - seen["in_doubt"]
        if doubtful:
            events = [Event("in_doubt", {}, effect) for effect in sorted(doubtful)]
            journal.append(taken.key, events, Level.COMMITTED, RunStatus.AWAITING)
            await journal.settled(taken.key)
        else:
            await self._drive(journal, taken.key, frozenset(seen["replied"] | seen["done"]))

    async def _drive(self, journal: RunJournal, key: RunKey, known: frozenset[str]) -> None:
        for step in range(STEPS):
            asked = f"m{step}"
            if asked not in known:
                await self._act("ask", key, asked)
                journal.append(key, [Event("replied", {"text": "x" * 200}, asked)])
            chance = random.Random(f"{key.uid}-{step}")
            tools = [chance.choice(["r", "w"]) for _ in range(chance.randint(1, 3))]
            async with asyncio.TaskGroup() as group:
                for place, kind in enumerate(tools):
                    effect = f"{kind}{step}.{place}"
                    if effect not in known:
                        group.create_task(self._use(journal, key, effect))
        journal.append(key, [Event("finished", {})], Level.SYNCED, RunStatus.FINISHED)
        await journal.settled(key)

    async def _use(self, journal: RunJournal, key: RunKey, effect: str) -> None:
        if effect.startswith("r"):
            await self._act("read", key, effect)
            journal.append(key, [Event("done", {"text": "x" * 200}, effect)])
            return
        level = Level.LAZY if self._careless else Level.SYNCED
        journal.append(key, [Event("intended", {"tool": "send"}, effect)], level)
        if not self._careless:
            await journal.settled(key)
        await self._act("write", key, effect)
        journal.append(key, [Event("done", {"text": "x" * 200}, effect)], level)

    async def _act(self, verb: str, key: RunKey, effect: str) -> None:
        os.write(self._world, f"{verb} {key.uid} {effect}\n".encode())
        await asyncio.sleep(0)


@dataclass(slots=True, kw_only=True)
class Report:
    """What was counted, and the promises that were broken."""

    kills: int = 0
    events: int = 0
    asked: int = 0
    writes: int = 0
    in_doubt: int = 0
    finished: int = 0
    broken: list[str] = field(default_factory=list)


class Checker:
    """Compares the journal with the world after each kill."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset = 0
        self._written: Counter[str] = Counter()
        self._recorded: set[str] = set()
        self.report = Report()

    def check(self) -> None:
        """Look at what is new in the world, and at the whole journal."""
        self.report.kills += 1
        world = (self._folder / WORLD).read_text(encoding="utf-8")[self._offset :]
        self._offset += len(world)
        acts = [line.split(maxsplit=1) for line in world.splitlines()]
        self._check_acts(acts)
        with closing(sqlite3.connect(self._folder / FILE)) as connection:
            if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
                self.report.broken.append("the database is damaged")
            rows = connection.execute("SELECT id, uid, head, status FROM runs").fetchall()
            events: dict[int, list[tuple[int, str, str]]] = {run: [] for run, *_ in rows}
            for run, *event in connection.execute(
                "SELECT run, seq, kind, effect FROM journal ORDER BY run, seq"
            ):
                events[run].append((event[0], event[1], event[2]))
        self._check_journal(rows, events)

    def _check_acts(self, acts: list[list[str]]) -> None:
        for verb, what in acts:
            if what in self._recorded:
                self.report.broken.append(f"{verb} {what} though its outcome was recorded")
            if verb == "write":
                self.report.writes += 1
                self._written[what] += 1
            self.report.asked += verb == "ask"
        self.report.broken += [
            f"write {what} {times} times" for what, times in self._written.items() if times > 1
        ]

    def _check_journal(
        self,
        rows: list[tuple[int, str, int, str]],
        events: dict[int, list[tuple[int, str, str]]],
    ) -> None:
        report, intended = self.report, set()
        report.events = report.in_doubt = report.finished = 0
        for run, uid, head, status in rows:
            found = events[run]
            report.events += len(found)
            if [seq for seq, _, _ in found] != list(range(1, head + 1)):
                report.broken.append(f"gaps in {uid}")
            of = {
                kind: {f"{uid} {effect}" for _, name, effect in found if name == kind}
                for kind in ("replied", "intended", "done", "in_doubt", "finished")
            }
            intended |= of["intended"]
            self._recorded |= of["replied"] | of["done"]
            report.in_doubt += len(of["in_doubt"])
            report.finished += status == "finished"
            if status != "open" and of["intended"] - of["done"] - of["in_doubt"]:
                report.broken.append(f"{uid} ended with a write that nobody was told of")
            if (status == "finished") is not bool(of["finished"]):
                report.broken.append(f"{uid} is {status}, which its events do not say")
        report.broken += [
            f"write {what} without an intent" for what in self._written if what not in intended
        ]


def kinds(entries: tuple[Entry, ...]) -> dict[str, set[str]]:
    """Return the effects of each kind of event."""
    found: dict[str, set[str]] = {
        kind: set() for kind in ("replied", "intended", "done", "in_doubt")
    }
    for entry in entries:
        found.setdefault(entry.event.kind, set()).add(entry.event.effect)
    return found


def killed(folder: Path, chance: random.Random, *, careless: bool) -> None:
    """Let one process work for a random while and kill it."""
    ready, said = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ready)
            asyncio.run(Worker(folder, careless=careless).work(said))
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(said)
    try:
        if os.read(ready, 1) != b".":
            raise ChildProcessError
        life = chance.uniform(0, LONGEST * chance.choice([1, 1, 1, 4]))
        if select.select([ready], [], [], life)[0]:  # it ended by itself
            raise ChildProcessError
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)


def main() -> None:
    """Kill processes and print the report; exit code 1 says that a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--careless", action="store_true")
    chosen = parser.parse_args()
    open_in(chosen.folder).close()
    chance, checker = random.Random(chosen.seed), Checker(chosen.folder)
    for _ in range(chosen.kills):
        killed(chosen.folder, chance, careless=chosen.careless)
        checker.check()
    report = checker.report
    counts = {name: getattr(report, name) for name in Report.__slots__ if name != "broken"}
    sys.stdout.write(
        json.dumps({"seed": chosen.seed, **counts, "broken": sorted(set(report.broken))}) + "\n"
    )
    raise SystemExit(bool(report.broken))


if __name__ == "__main__":
    main()
