"""One operation of the admin API, declared once: it is dispatched and documented from this value.

Never knows what an operation does; a handler is a function of the desk that does it.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from thoughtgate.core.errors import Conflict, GateError
from thoughtgate.core.json import JsonValue

BASE = "/api/v1"
"""Where the admin API is served."""

D = TypeVar("D")

_TEMPLATE = re.compile(r"\{([a-z]+)\}")
_TAG = re.compile(r'"([0-9]{1,18})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What a writer expects: the registry at a revision, and that a thing is there or is not."""

    revision: int | None = None
    exists: bool | None = None

    def hold(self, *, exists: bool) -> None:
        """Hold the expectation against what is there.

        Raises:
            Conflict: It is otherwise.
        """
        if self.exists is not None and self.exists is not exists:
            raise Conflict(message="it is not there" if self.exists else "it is there already")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request, decoded: `query` and `body` are the structs of its route, or None."""

    path: Mapping[str, str]
    query: Any = None
    body: Any = None
    match: Match = Match()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[D]):
    """An operation; `name` is its id, `path` a template below the base.

    `errors` are those that are its own, beside what any request may lead to. `tagged` replies carry
    the registry's revision as their ETag; a `guarded` one needs a precondition. `refuse` looks at
    the raw body first.
    """

    name: str
    method: str
    path: str
    summary: str
    handler: Callable[[D, Ask], Awaitable[msgspec.Struct]]
    reply: type[msgspec.Struct]
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    errors: tuple[type[GateError], ...] = ()
    tagged: bool = False
    guarded: bool = False
    refuse: Callable[[JsonValue], None] | None = None

    @property
    def writes(self) -> bool:
        """Say whether it changes anything."""
        return self.method != "GET"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names in the path, in their order."""
        return tuple(_TEMPLATE.findall(self.path))

    def fits(self, segments: tuple[str, ...]) -> Mapping[str, str] | None:
        """Return the values of the names in the path, None when the path is another one."""
        parts = self.path.strip("/").split("/")
        if len(parts) != len(segments):
            return None
        values: dict[str, str] = {}
        for part, segment in zip(parts, segments, strict=True):
            named = _TEMPLATE.fullmatch(part)
            if named is not None:
                values[named[1]] = segment
            elif part != segment:
                return None
        return values


def etag(revision: int) -> str:
    """Return a revision of the registry as an ETag."""
    return f'"{revision}"'


def match_of(if_match: str | None, if_none_match: str | None) -> Match | None:
    """Return what the two headers of a precondition say, None when they cannot be read."""
    if if_none_match is not None:
        return Match(exists=False) if if_none_match == "*" and if_match is None else None
    if if_match is None:
        return Match()
    if if_match == "*":
        return Match(exists=True)
    tag = _TAG.fullmatch(if_match)
    return None if tag is None else Match(revision=int(tag[1]))
