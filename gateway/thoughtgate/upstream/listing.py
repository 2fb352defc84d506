"""Listing what a server offers: all pages of each list, to the end or to a limit, with a warning.

Never judges anything: what the server sent is what the listing holds.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from thoughtgate.core.errors import UpstreamError, UpstreamGarbled, UpstreamReplied
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Listing
from thoughtgate.upstream.ports import Link
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import BadMessage

MAX_PAGES = 100

MAX_TOOLS = 2_000
"""Entries of one list of one server; each change costs the time to dress all of them anew."""

MAX_BYTES = 33_554_432
"""Bytes of all pages of one list together."""

ALL = frozenset({"tools", "prompts", "resources"})
"""The lists that a server can say to have changed; templates count as resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One of a server's lists: how it is asked for, what the entries are called."""

    method: str
    member: str
    noun: str
    declared: str


_TOOLS = _Kind(method=methods.TOOLS_LIST, member="tools", noun="tools", declared="tools")
_PROMPTS = _Kind(method=methods.PROMPTS_LIST, member="prompts", noun="prompts", declared="prompts")
_RESOURCES = _Kind(
    method=methods.RESOURCES_LIST, member="resources", noun="resources", declared="resources"
)
_TEMPLATES = _Kind(
    method=methods.TEMPLATES_LIST,
    member="resourceTemplates",
    noun="resource templates",
    declared="resources",
)


async def list_all(
    server: str,
    link: Link,
    patience: float,
    known: Listing | None = None,
    which: frozenset[str] = ALL,
) -> Listing:
    """Return everything that the server offers now.

    Tools are asked for in any case, the other lists when the server declares them; each of those
    may take `patience` seconds, and costs only a warning when it fails. `known` is what was listed
    before: it stands for lists that fail now, and for those that are not `which` to read.

    Raises:
        UpstreamError: The first page of tools cannot be had.
    """
    peer = link.peer
    warnings: list[str] = []
    tools = known.tools if known is not None and "tools" not in which else None
    if tools is None:
        tools = await _list(link, _TOOLS, warnings)
    more = _entries(known)
    for kind in more:
        if kind.declared not in peer.capabilities:
            more[kind] = ()
        elif kind.declared in which:
            more[kind] = await _try(link, kind, warnings, patience, more[kind])
    return Listing(
        server=server,
        tools=tools,
        prompts=more[_PROMPTS],
        resources=more[_RESOURCES],
        templates=more[_TEMPLATES],
        era=peer.era,
        version=peer.version,
        server_info=peer.server_info,
        instructions=peer.instructions,
        capabilities=peer.capabilities,
        warnings=tuple(warnings),
    )


async def first_page(link: Link) -> None:
    """Ask for the first page of the tools, and drop it; a server without tools has answered too.

    Raises:
        UpstreamError: It did not answer, or not with a page.
    """
    try:
        await _page(link, _TOOLS, None)
    except UpstreamReplied as error:
        if not _is_missing(error):
            raise


def _entries(known: Listing | None) -> dict[_Kind, tuple[JsonObject, ...]]:
    if known is None:
        return {_PROMPTS: (), _RESOURCES: (), _TEMPLATES: ()}
    return {_PROMPTS: known.prompts, _RESOURCES: known.resources, _TEMPLATES: known.templates}


async def _try(
    link: Link,
    kind: _Kind,
    warnings: list[str],
    patience: float,
    known: tuple[JsonObject, ...],
) -> tuple[JsonObject, ...]:
    """Return what a list holds now; when it cannot be read, what it is known to hold."""
    try:
        async with asyncio.timeout(patience):
            return await _list(link, kind, warnings)
    except UpstreamError as error:
        warnings.append(f"the {kind.noun} could not be read: {error.message}")
    except TimeoutError:
        warnings.append(f"the {kind.noun} did not come within {patience:g} seconds")
    return known


async def _list(link: Link, kind: _Kind, warnings: list[str]) -> tuple[JsonObject, ...]:
    """Return all entries of a list.

    Raises:
        UpstreamError: The first page cannot be had; later ones only cost a warning.
    """
    pages: list[methods.Page] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    while True:
        try:
            page = await _page(link, kind, cursor)
        except (UpstreamGarbled, UpstreamReplied) as error:
            if not pages and not _is_missing(error):
                raise
            if pages or kind is _TOOLS:
                place = f"page {len(pages) + 1} of the {kind.noun}"
                warnings.append(f"{place} could not be read: {error.message}")
            break
        pages.append(page)
        cursor = page.cursor
        if cursor is None and not _excess(pages):
            break
        if reason := _end(pages, cursor, seen):
            warnings.append(f"{reason}; the list of {kind.noun} ends there")
            break
        seen.add(cursor)
    return tuple(entry for page in pages for entry in page.entries)[:MAX_TOOLS]


def _end(pages: Sequence[methods.Page], cursor: str | None, seen: set[str | None]) -> str:
    """Return why no more pages are read; empty when there is no reason."""
    if excess := _excess(pages):
        return f"more than {excess}"
    if cursor in seen:
        return f"page {len(pages)} repeats a cursor"
    return f"more than {MAX_PAGES} pages" if len(pages) >= MAX_PAGES else ""


def _excess(pages: Sequence[methods.Page]) -> str:
    """Return the limit that the pages exceed together; empty when they do not."""
    if sum(len(page.entries) for page in pages) > MAX_TOOLS:
        return f"{MAX_TOOLS} definitions"
    return f"{MAX_BYTES} bytes" if sum(page.size for page in pages) > MAX_BYTES else ""


async def _page(link: Link, kind: _Kind, cursor: str | None) -> methods.Page:
    result = await link.request(kind.method, methods.list_params(cursor, {}))
    try:
        return methods.read_page(result, kind.member)
    except BadMessage as error:
        raise UpstreamGarbled(message=f"{kind.method}: {error.message}") from None


def _is_missing(error: UpstreamGarbled | UpstreamReplied) -> bool:
    return isinstance(error, UpstreamReplied) and error.rpc_code == codes.METHOD_NOT_FOUND
