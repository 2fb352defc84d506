"""URIs of resources: those that name their server, templates, and the spellings of one.

Never asks anybody, and never spends more on a hostile URI or template than its length is worth.
"""

import re
from functools import lru_cache
from posixpath import normpath
from typing import Final
from urllib.parse import unquote

_OWN: Final = "thoughtgate+"
_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")
_PARTS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_ROUNDS: Final = 4
"""How often a URI may be escaped over and over; one that is more often hides something."""


def own_uri(server: str, uri: str) -> str:
    """Return a URI that names its server: `thoughtgate+SERVER:` before the server's own."""
    return f"{_OWN}{server}:{uri}"


def split_uri(uri: str) -> tuple[str, str]:
    """Return (server, its own URI) of what `own_uri` made, else an empty server and the URI."""
    if not uri.startswith(_OWN):
        return "", uri
    server, colon, rest = uri.removeprefix(_OWN).partition(":")
    return (server, rest) if colon and rest else ("", uri)


def becomes(template: str, uri: str) -> bool:
    """Tell whether a URI template (RFC 6570) can become a URI; an expression is anything.

    The text between the expressions is looked for from left to right, once: a regular expression
    would try every way to divide the URI among them.
    """
    first, *inner = _texts(template)
    if not inner:
        return uri == first
    last = inner.pop()
    at, end = len(first), len(uri) - len(last)
    if at > end or not uri.startswith(first) or not uri.endswith(last):
        return False
    for text in inner:
        found = uri.find(text, at, end)
        if found < 0:
            return False
        at = found + len(text)
    return True


def spellings(uri: str) -> tuple[str, ...] | None:
    """Return a URI as it stands, and in the plain spellings that servers take for the same.

    None for one that climbs out of the folder that it names, or hides what it names: where rules
    decide by how a URI begins, such a one is nobody's.
    """
    found, rest = [uri], uri
    for _ in range(_ROUNDS):
        plain = _unescaped(rest)
        simple = None if plain is None else _simple(plain)
        if plain is None or simple is None:
            return None
        found += [plain, *simple]
        server, rest = split_uri(plain)  # a gateway behind us takes one that names its server
        if not server:
            return tuple(dict.fromkeys(found))
    return None


def _simple(uri: str) -> tuple[str, ...] | None:
    """Return the plainest spelling of a URI without escapes, with and without query and fragment.

    None for one that climbs.
    """
    parts = _PARTS.fullmatch(uri)
    if parts is None:
        return ()
    scheme, host, path, more = parts[1].lower(), parts[2], parts[3], parts[4]
    if ".." in path.replace("\\", "/").split("/"):
        return None
    if host is None and not path.startswith("/"):
        return f"{scheme}:{path}", f"{scheme}:{path}{more}"
    host = "" if host is None or (scheme == "file" and host.lower() == "localhost") else host
    slim = "/" + normpath(path).lstrip("/") if path else ""
    slim += "/" if path.endswith(("/", "/.")) and slim != "/" else ""
    whole = f"{scheme}://{host.lower()}{slim}"
    return whole, whole + more


@lru_cache(maxsize=4096)
def _texts(template: str) -> tuple[str, ...]:
    """Return what stands between the expressions of a template."""
    return tuple(_EXPRESSION.split(template))


def _unescaped(uri: str) -> str | None:
    for _ in range(_ROUNDS):
        plain = unquote(uri)
        if plain == uri:
            return plain
        uri = plain
    return None
