"""The pages of every list: encoded once per revision of the list and era.

Never lists anything itself: what is shown is the view's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.views import View
from thoughtgate.wire import methods
from thoughtgate.wire.methods import invalid_params, read_cursor
from thoughtgate.wire.strict import dumps

WriteList = Callable[[bytes, str | None, str], bytes]
"""Makes an era's list result of a JSON array, the next cursor and what the items are."""


class _List(NamedTuple):
    key: str
    revision: str
    shown: Callable[[View, Era], list[JsonObject]]


LISTS: Final[Mapping[str, _List]] = {
    methods.TOOLS_LIST: _List(
        "tools", "tools", lambda view, era: [entry.shown_to(era) for entry in view.entries]
    ),
    methods.PROMPTS_LIST: _List(
        "prompts", "prompts", lambda view, _: [one.shown for one in view.prompts]
    ),
    methods.RESOURCES_LIST: _List(
        "resources", "resources", lambda view, _: [one.shown for one in view.resources]
    ),
    methods.TEMPLATES_LIST: _List(
        "resourceTemplates", "resources", lambda view, _: [one.shown for one in view.templates]
    ),
}
"""By method: the member that holds the items, the revision that counts, and what is shown."""


class Pages:
    """Answers list requests; `size` is items per page."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._written: dict[tuple[str, str, Era], _Written] = {}

    def page(
        self, view: View, method: str, params: JsonObject, write: WriteList, era: Era
    ) -> bytes:
        """Return one page of a list.

        Raises:
            BadMessage: A cursor that we did not give, or gave before the list changed.
        """
        cursor, wanted = read_cursor(params), LISTS[method]
        revision = view.revisions[wanted.revision]
        key = (view.domain.name, method, era)
        written = self._written.get(key)
        if written is None or written.revision != revision:
            shown = wanted.shown(view, era)
            written = _write(revision, shown, self._size, _keyed(write, wanted.key))
            self._written[key] = written
        page = written.results.get(cursor)
        if page is None:
            raise invalid_params(message="the cursor is unknown or stale; list from the start")
        return page


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    revision: str
    results: Mapping[str | None, bytes]


def _write(
    revision: str,
    shown: Sequence[JsonObject],
    size: int,
    write: Callable[[bytes, str | None], bytes],
) -> _Written:
    """Write every page; a cursor is bound to the revision, so a stale one is not found."""
    seal = revision.rpartition(":")[2][:16]
    starts = range(0, max(len(shown), 1), size)
    cursors = [None, *(f"{seal}-{start}" for start in starts[1:]), None]
    return _Written(
        revision=revision,
        results={
            cursors[number]: write(_array(shown[start : start + size]), cursors[number + 1])
            for number, start in enumerate(starts)
        },
    )


def _keyed(write: WriteList, key: str) -> Callable[[bytes, str | None], bytes]:
    return lambda items, cursor: write(items, cursor, key)


def _array(shown: Iterable[JsonObject]) -> bytes:
    return b"[%b]" % b",".join(map(dumps, shown))
