"""Which Host and Origin may speak to us: the guard against DNS rebinding, on every route.

Never trusts a forwarded header: only `Host` and `Origin` are looked at.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from thoughtgate.surface.http_io import Headers, Refusal

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::[0-9]*)?")

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """Host names (without port) that reach us, and origins beyond those of these hosts.

    An origin is `scheme://host[:port]`, compared whole. Pages of an allowed host may call from any
    port: on loopback every local page has one of these names.
    """

    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()

    def check(self, headers: Headers) -> None:
        """Hold a request against the rules.

        Raises:
            Refusal: 421 for a foreign or missing Host, 403 for a foreign Origin.
        """
        if _name(headers.get(b"host", b"")) not in self.hosts:
            raise Refusal(421, message="this host name is not served here")
        origin = headers.get(b"origin")
        if origin is not None and not self._welcomes(origin.decode("latin-1").lower()):
            raise Refusal(403, message="this origin may not call")

    def _welcomes(self, origin: str) -> bool:
        if origin in self.origins:
            return True
        scheme, _, host = origin.partition("://")
        return scheme in {"http", "https"} and _name(host.encode("latin-1")) in self.hosts


@lru_cache(maxsize=256)
def _name(host: bytes) -> str:
    """Return the name in `host[:port]`, in lower case and without the port; empty when none."""
    match = _HOST.fullmatch(host.decode("latin-1").strip().lower())
    return (match[1] or match[2]) if match else ""
