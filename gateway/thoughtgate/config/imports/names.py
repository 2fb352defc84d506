"""Names of servers: other clients' names turned into ours, and what a URL tells by itself.

Never gives two results for one name; whether a name is taken is seen elsewhere.
"""

import hashlib
import ipaddress
import re
import unicodedata
from urllib.parse import urlsplit

from thoughtgate.core.errors import ConfigError

_LONGEST = 40
_SAY_NOTHING = {"www", "mcp", "api", "app"}
"""Labels of a host that do not tell one service from another."""


def proper_name(name: str) -> str:
    """Return `name` in our alphabet: accents go, everything else becomes a hyphen.

    A name without any letter or digit of ours gets one that is made from its digest.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    made = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST].rstrip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return made or f"server-{digest[:6]}"


def name_from_url(url: str) -> str:
    """Return a name for the server at `url`: what its host says, such as `sentry`.

    Raises:
        ConfigError: There is no host to take it from.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host:
        raise ConfigError(message="the URL names no host; give a name: server add NAME URL")
    labels = host.split(".")
    if _is_address(host) or len(labels) == 1:
        return proper_name(f"{host}-{port}" if port else host)
    kept = [label for label in labels[:-1] if label not in _SAY_NOTHING]
    return proper_name("-".join(kept or labels))


def is_sse_url(url: str) -> bool:
    """Say whether a URL looks like one of the older HTTP+SSE transport: its path ends in /sse."""
    return re.split("[?#]", url, maxsplit=1)[0].rstrip("/").endswith("/sse")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
