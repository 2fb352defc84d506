"""Faults as values, and the plan by which a fake server picks the next one.

Never does harm itself: what a fault does is the matter of `fault_strikes`.
"""

import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from thoughtgate.core.json import JsonValue

START: Final = "start"
"""What a fault is `on` when it is to strike as the process starts."""

STREAM: Final = "GET"
"""What a fault is `on` when it is to strike as a client opens its standing stream over HTTP."""

CONNECT: Final = "connect"
"""What a fault is `on` when it is to strike as a client connects over gRPC."""

CALLS: Final = "tools/call"
CONTROL: Final = "set_faults"
"""The tool that changes the plan; no fault strikes it."""


class Kind(Enum):
    """What can go wrong; where a kind means nothing (a status over stdio), all goes well."""

    CRASH = "crash"
    """Breaks off, `before`, `during` or `after` the reply: a child ends, a connection is cut."""
    EXIT = "exit"
    """The same, but the process ends over HTTP too; `code` below zero is a signal."""
    HANG = "hang"
    """Answers nothing; `after`: does what was asked, and then answers nothing."""
    HALF_OPEN = "half_open"
    """Neither reads nor writes any more, after `count` comments on a stream, and does not close."""
    SLOW = "slow"
    """Answers after `seconds`."""
    LATE = "late"
    """Answers `seconds` after it was cancelled."""
    DRIBBLE = "dribble"
    """Writes its reply byte by byte."""
    SPLIT = "split"
    """Writes a reply with letters of many bytes, each cut in its middle."""
    TOGETHER = "together"
    """Writes several messages at once, the reply among them."""
    HUGE = "huge"
    """Adds `count` bytes to its reply (8 MiB)."""
    NOISE = "noise"
    """Writes what is no message, then answers."""
    EMPTY_EVENTS = "empty_events"
    """Sends events without data and comments (blank lines over stdio), then answers."""
    STDERR = "stderr"
    """Writes `count` bytes to standard error (1 MiB), then answers."""
    DUPLICATE = "duplicate"
    """Answers twice."""
    STRAY = "stray"
    """Answers a request that nobody sent, then its own."""
    WRONG = "wrong"
    """Answers under the id of a request that nobody sent."""
    ERROR = "error"
    """Answers with a protocol error of `code`."""
    PROGRESS = "progress"
    """Reports progress `count` times before it answers, for ever when 0."""
    STORM = "storm"
    """Says `count` times (100) that its tools changed, then answers."""
    LOOP = "loop"
    """Names the same next page for ever (`on = "tools/list"`)."""
    INHERIT = "inherit"
    """Runs a child that holds standard input and output, then answers."""
    STATUS = "status"
    """Answers with the HTTP status `code` (503)."""
    REDIRECT = "redirect"
    """Answers with a redirect to `text`."""
    BROKEN = "broken"
    """Answers with JSON that is none, in the way of `text`, such as `nan` or `surrogate`."""
    NOTHING = "nothing"
    """Ends its answer over gRPC without a result."""
    GOAWAY = "goaway"
    """Says over gRPC that it takes no more on this connection, and cuts it if there is a `code`."""
    EXPIRE = "expire"
    """Forgets the session and says so."""


class When(Enum):
    """When a fault strikes, seen from the reply."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong, and which calls it meets.

    `on` is a tool, a method, `start`, `connect` or `GET`; every call of a tool when empty. Of these
    the first `skip` are served well, then each meets the fault with `chance`, at most `times` times
    (0: always). The rest are parameters that a kind may know.
    """

    name: Kind
    when: When = When.BEFORE
    on: str = ""
    skip: int = 0
    times: int = 0
    chance: Annotated[float, Meta(ge=0, le=1)] = 1.0
    seconds: float = 0.0
    count: int = 0
    code: int = 0
    text: str = ""

    def meets(self, method: str, name: str) -> bool:
        """Say whether it is meant for a request of this method and name."""
        return name != CONTROL and (self.on in {method, name} if self.on else method == CALLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The faults of a server; of those that meet a request the first that falls due strikes."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0


class BadPlan(ValueError):
    """What was given is no plan."""


def read_plan(value: JsonValue) -> Plan:
    """Return the plan that JSON describes: a list of faults, or an object with `seed` too.

    Raises:
        BadPlan: A name, a field or a value that is not known.
    """
    whole = {"faults": value} if isinstance(value, list) else value
    try:
        plan = msgspec.convert(whole, Plan)
    except msgspec.ValidationError as error:
        raise BadPlan(str(error)) from None
    strange = {*whole} - {field.name for field in fields(Plan)}
    known = {field.name for field in fields(Fault)}
    strange |= {name for fault in whole.get("faults", ()) for name in fault if name not in known}
    if strange:
        unknown = ", ".join(sorted(map(str, strange)))
        raise BadPlan("no such field: " + unknown)
    return plan


class Faults:
    """The plan as it stands: given as JSON or as a file that is read again when it changes.

    `start` counts the starts of the process, so that each rolls other dice from one seed. What is
    no plan raises `BadPlan` here; a file that turns into none later changes nothing.
    """

    def __init__(self, given: str = "", start: int = 0) -> None:
        self._start = start
        self._stamp = 0
        self._file = Path(given) if given and not given.lstrip().startswith(("{", "[")) else None
        self.put(Plan())
        try:
            if self._file is not None:
                self._read(self._file)
            elif given:
                self.put(read_plan(json.loads(given)))
        except (OSError, ValueError) as error:
            raise BadPlan(str(error)) from None

    def put(self, plan: Plan) -> None:
        """Let another plan hold from now on."""
        self.plan = plan
        self._random = random.Random(f"{plan.seed}/{self._start}")
        self._met: Counter[int] = Counter()
        self._struck: Counter[int] = Counter()

    def pick(self, method: str, name: str = "") -> Fault | None:
        """Return the fault that meets this request, if one does."""
        if self._file is not None:
            self._look()
        for index, fault in enumerate(self.plan.faults):
            if fault.meets(method, name) and self._due(index, fault):
                return fault
        return None

    def _due(self, index: int, fault: Fault) -> bool:
        self._met[index] += 1
        spent = fault.times and self._struck[index] >= fault.times
        if self._met[index] <= fault.skip or spent or self._random.random() >= fault.chance:
            return False
        self._struck[index] += 1
        return True

    def _look(self) -> None:
        """Read the file again if it changed; one that cannot be read changes nothing."""
        assert self._file is not None
        try:
            self._read(self._file)
        except (OSError, ValueError) as error:
            sys.stderr.write(f"the faults stay as they were: {error}\n")
            sys.stderr.flush()

    def _read(self, file: Path) -> None:
        stamp = file.stat().st_mtime_ns
        if stamp != self._stamp:
            self._stamp = stamp
            self.put(read_plan(json.loads(file.read_bytes())))
