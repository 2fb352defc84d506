"""What one call sees: the catalogue and the domains as they stood when it began.

Never changes under a running call: an update makes a new snapshot, and a call ends on its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from thoughtgate.catalog import Catalog
from thoughtgate.core.calls import Call, ItemName, ToolName
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.tools import Item, Tool
from thoughtgate.views import Entry, View

Attributes = Mapping[str, object]

ITEMS = (ItemName, Item)
_FOUND = (Tool, Item)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One catalogue and the domains over it.

    `peers` are span attributes by server; `gone` holds, by domain, the names that were shown
    earlier and the catalogue revision that took them away; `views` has one of every domain.
    """

    catalog: Catalog
    domains: Mapping[str, Domain]
    peers: Mapping[str, Attributes] = field(default_factory=dict)
    gone: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)

    def view(self, domain: str) -> View:
        """Return a domain's view.

        Raises:
            UnknownTarget: There is no such domain.
        """
        found = self.views.get(domain)
        if found is None:
            raise UnknownTarget(name=domain, kind="domain")
        return found

    def entry(self, call: Call) -> Entry | None:
        """Return the tool that the call means, None when its domain shows no such tool."""
        if isinstance(call.target, ITEMS) or call.domain not in self.domains:
            return None
        name = call.target.name if isinstance(call.target, ToolName) else call.advertised
        return self.view(call.domain).table.get(name)

    def found(self, call: Call) -> Tool | Item | None:
        """Return what the call means, None when its domain shows nothing such."""
        if isinstance(call.target, _FOUND):
            return call.target
        if call.meant is not None:
            return call.meant
        if call.domain not in self.domains:
            return None
        view = self.view(call.domain)
        if isinstance(call.target, ItemName):
            return view.offered.find(call.target, call.arguments)
        entry = view.table.get(call.target.name)
        return None if entry is None else entry.tool
