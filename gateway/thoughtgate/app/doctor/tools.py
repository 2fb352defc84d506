"""What clients would be shown: tools held back, names that are too long, names that collide.

Never looks at a server; what servers offered is handed in.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from thoughtgate.app.doctor.findings import Checked, Finding
from thoughtgate.app.offline import offline_view
from thoughtgate.catalog import Part, admit, merge
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Listing, Server
from thoughtgate.core.tools import Quarantined
from thoughtgate.schema import registration
from thoughtgate.views import View

_CLASHES = ("is ambiguous", "is taken", "differ only in case")
_NAMED = 3
"""Names that are shown of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimit:
    """How long a tool's name may be for one client, which puts `prefix` before it."""

    client: str
    longest: int
    prefix: str = ""


CLIENT_LIMITS = (
    ClientLimit(client="Claude Code", longest=64, prefix="mcp__thoughtgate__"),
    ClientLimit(client="Cursor", longest=60, prefix="thoughtgate:"),
    ClientLimit(client="VS Code", longest=64, prefix="mcp_thoughtgate_"),
)
"""What clients make of names, when the gateway is connected by the name `thoughtgate`."""


def part(listing: Listing, server: Server) -> Part:
    """Return the tools of a listing, admitted or quarantined; nothing is remembered."""
    return admit(listing, server=server, effects={}, reject=_rejected)


def check_tools(parts: Iterable[Part], domains: Iterable[Domain]) -> Checked:
    """Look at what every domain shows of these tools."""
    catalog = merge(parts)
    findings = [
        *judged_quarantine(catalog.quarantined),
        *_clashes("every domain", catalog.warnings),
    ]
    for domain in domains:
        view = offline_view(catalog, domain)
        findings += judged_view(domain.name, view)
    said = f"{len(catalog.tools)} tools, {len(catalog.quarantined)} held back"
    return Checked(name="tools", said=said, findings=tuple(findings))


def judged_quarantine(held: Iterable[Quarantined]) -> Iterator[Finding]:
    """Yield each tool that is held back, with the reason."""
    for tool in held:
        taken = tool.rule in {"duplicate_name", "name_taken"}
        yield Finding(
            code="names_collide" if taken else "tool_quarantined",
            where=f"tool {tool.server}/{tool.name}",
            what=f"it is held back: {tool.reason} ({tool.rule})",
            mend=f"tell the makers of {tool.server}; see: thoughtgate tool list --quarantined",
        )


def judged_view(domain: str, view: View) -> Iterator[Finding]:
    """Yield what clients of a domain cannot use."""
    yield from _clashes(f"domain {domain}", view.warnings)
    for limit in CLIENT_LIMITS:
        room = limit.longest - len(limit.prefix)
        long = sorted(entry.name for entry in view.entries if len(entry.name) > room)
        if long:
            more = f" and {len(long) - _NAMED} more" if len(long) > _NAMED else ""
            first = next(entry for entry in view.entries if entry.name == long[0])
            own = "/".join(first.tool.key)
            yield Finding(
                code="name_too_long",
                where=f"domain {domain}",
                what=f"{limit.client} takes names of {room} characters at most, longer are: "
                f"{', '.join(long[:_NAMED])}{more}",
                mend=f"thoughtgate domain set {domain} --rename {own}=SHORTER",
            )


def _clashes(where: str, warnings: Iterable[str]) -> Iterator[Finding]:
    for warning in warnings:
        if any(clash in warning for clash in _CLASHES):
            yield Finding(
                code="names_collide",
                where=where,
                what=warning,
                mend="thoughtgate domain set DOMAIN --rename SERVER/TOOL=NAME, or --prefixed",
            )


def _rejected(schema: JsonObject) -> SchemaRejected | None:
    try:
        registration.admit(schema)
    except SchemaRejected as rejected:
        return rejected
    return None
