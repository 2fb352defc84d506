"""Listing a server's tools: all pages, to the end or to a limit, with a warning.

Never judges a tool: what the server sent is what the listing holds.
"""

from collections.abc import Sequence

from thoughtgate.core.errors import UpstreamGarbled, UpstreamReplied
from thoughtgate.core.servers import Listing
from thoughtgate.upstream.ports import Link
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import BadMessage

MAX_PAGES = 100

MAX_TOOLS = 2_000
"""Tools of one server; each change of its list costs the time to dress all of them anew."""

MAX_BYTES = 33_554_432
"""Bytes of all pages together."""


async def list_tools(server: str, link: Link) -> Listing:
    """Return everything that the server offers now.

    Raises:
        UpstreamError: The first page cannot be had; later ones only cost a warning.
    """
    pages: list[methods.Page] = []
    warnings: list[str] = []
    cursor: str | None = None
    seen: set[str] = set()
    for number in range(1, MAX_PAGES + 1):
        try:
            page = await _page(link, cursor)
        except (UpstreamGarbled, UpstreamReplied) as error:
            if number == 1 and not _has_no_tools(error):
                raise
            warnings.append(f"page {number} of the tools could not be read: {error.message}")
            break
        pages.append(page)
        if excess := _excess(pages):
            warnings.append(f"more than {excess} of tools; the list ends there")
            break
        cursor = page.cursor
        if cursor is None:
            break
        if cursor in seen:
            warnings.append(f"page {number} repeats a cursor; the list of tools ends there")
            break
        seen.add(cursor)
    else:
        warnings.append(f"more than {MAX_PAGES} pages of tools; the list ends there")
    peer = link.peer
    return Listing(
        server=server,
        tools=tuple(tool for page in pages for tool in page.tools)[:MAX_TOOLS],
        era=peer.era,
        version=peer.version,
        server_info=peer.server_info,
        instructions=peer.instructions,
        warnings=tuple(warnings),
    )


def _excess(pages: Sequence[methods.Page]) -> str:
    """Return the limit that the pages exceed together; empty when they do not."""
    if sum(len(page.tools) for page in pages) > MAX_TOOLS:
        return f"{MAX_TOOLS} definitions"
    return f"{MAX_BYTES} bytes" if sum(page.size for page in pages) > MAX_BYTES else ""


async def _page(link: Link, cursor: str | None) -> methods.Page:
    result = await link.request(methods.TOOLS_LIST, methods.list_params(cursor, {}))
    try:
        return methods.read_page(result)
    except BadMessage as error:
        raise UpstreamGarbled(message=f"tools/list: {error.message}") from None


def _has_no_tools(error: UpstreamGarbled | UpstreamReplied) -> bool:
    return isinstance(error, UpstreamReplied) and error.rpc_code == codes.METHOD_NOT_FOUND
