"""The pages of every list: each encoded when it is first asked for, once per revision and era.

Never lists anything itself: what is shown is the view's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.offered import Shown
from thoughtgate.views import Entry, View
from thoughtgate.wire import methods
from thoughtgate.wire.messages import BadMessage
from thoughtgate.wire.methods import invalid_params, read_cursor
from thoughtgate.wire.strict import dumps

WriteList = Callable[[bytes, str | None, str], bytes]
"""Makes an era's list result of a JSON array, the next cursor and what the items are."""


class _List(NamedTuple):
    key: str
    revision: str
    items: Callable[[View], Sequence[Entry | Shown]]


LISTS: Final[Mapping[str, _List]] = {
    methods.TOOLS_LIST: _List("tools", "tools", lambda view: view.entries),
    methods.PROMPTS_LIST: _List("prompts", "prompts", lambda view: view.prompts),
    methods.RESOURCES_LIST: _List("resources", "resources", lambda view: view.resources),
    methods.TEMPLATES_LIST: _List("resourceTemplates", "resources", lambda view: view.templates),
}
"""By method: the member that holds the items, the revision that counts, and what is listed."""


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
            written = _Written(revision, {})
            self._written[key] = written
        page = written.pages.get(cursor)
        if page is None:
            page = self._page(wanted.items(view), cursor, revision, era, _keyed(write, wanted.key))
            written.pages[cursor] = page
        return page

    def _page(
        self,
        items: Sequence[Entry | Shown],
        cursor: str | None,
        revision: str,
        era: Era,
        write: Callable[[bytes, str | None], bytes],
    ) -> bytes:
        """Write the page that a cursor begins; it is bound to the revision, so none is stale."""
        start = _start(cursor, revision)
        if start % self._size or start >= max(len(items), 1):
            raise _stale()
        end = start + self._size
        following = _cursor(revision, end) if end < len(items) else None
        return write(_array(_shown(one, era) for one in items[start:end]), following)


class _Written(NamedTuple):
    revision: str
    pages: dict[str | None, bytes]


def _cursor(revision: str, start: int) -> str:
    return f"{revision.rpartition(':')[2][:16]}-{start}"


def _start(cursor: str | None, revision: str) -> int:
    """Return where the page of a cursor begins; only what we wrote is understood."""
    if cursor is None:
        return 0
    digits = cursor.rpartition("-")[2][:12]
    start = int(digits) if digits.isascii() and digits.isdigit() else 0
    if not start or cursor != _cursor(revision, start):
        raise _stale()
    return start


def _stale() -> BadMessage:
    return invalid_params(message="the cursor is unknown or stale; list from the start")


def _keyed(write: WriteList, key: str) -> Callable[[bytes, str | None], bytes]:
    return lambda items, cursor: write(items, cursor, key)


def _shown(one: Entry | Shown, era: Era) -> JsonObject:
    return one.shown_to(era) if isinstance(one, Entry) else one.shown


def _array(shown: Iterable[JsonObject]) -> bytes:
    return b"[%b]" % b",".join(map(dumps, shown))
