"""Where listeners are known: looked up without asking thousands of connections."""

from dataclasses import dataclass, field
from typing import Any

from thoughtgate.upstream.known import Known


@dataclass(eq=False)
class Home:
    subscriptions: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Connection:
    home: Home = field(default_factory=Home)


def test_a_listener_is_found_where_it_was_noted_and_forgotten_when_it_leaves() -> None:
    known, listener = Known(), object()
    first, second = Connection(Home(["r:x"])), Connection()
    for connection in (first, first, second, second):
        known.note(as_any(listener), as_any(connection))
    assert known.forget(as_any(listener)) == as_any([first, second])
    assert known.forget(as_any(listener)) == []
    assert len(known) == 0


def test_connections_on_which_nothing_is_followed_make_way_for_the_next() -> None:
    known, listener = Known(), object()
    for _ in range(5):
        last = Connection()
        known.note(as_any(listener), as_any(last))
    assert known.forget(as_any(listener)) == as_any([last])


def as_any(value: object) -> Any:
    return value
