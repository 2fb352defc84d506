"""What may be shown of settings: everything but what is, or may well be, a secret.

Never the last line of defence: values of headers and variables are not even asked for here.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from thoughtgate.core.servers import GrpcTransport, HttpTransport, StdioTransport, Transport
from thoughtgate.telemetry.redact import HIDDEN, is_secret_name, redact

MASK = "***"


def shown_transport(transport: Transport) -> str:
    """Return a transport in one line, for people."""
    if isinstance(transport, StdioTransport):
        return " ".join(shown_command(transport.argv))
    return shown_url(url_of(transport)) or "in this process"


def url_of(transport: Transport) -> str:
    """Return the URL of a server that has one, else an empty text."""
    return transport.url if isinstance(transport, HttpTransport | GrpcTransport) else ""


def shown_command(argv: Sequence[str]) -> list[str]:
    """Return a command without the values of options such as `--api-key`, and without passwords."""
    shown: list[str] = []
    hide = False
    for part in argv:
        name, equals, _ = part.partition("=")
        secret = name.startswith("-") and is_secret_name(name)
        if hide:
            shown.append(MASK)
        else:
            shown.append(f"{name}={MASK}" if secret and equals else shown_text(part))
        hide = secret and not equals
    return shown


def shown_text(text: str) -> str:
    """Return a text without what has the shape of a secret, such as the password in a URL."""
    return redact(text).replace(HIDDEN, MASK)


def shown_url(url: str) -> str:
    """Return a URL without its user and password and the values of its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    user, at, host = parts.netloc.rpartition("@")
    pairs = [pair.partition("=") for pair in parts.query.split("&") if pair]
    query = "&".join(f"{name}={MASK}" if equals else MASK for name, equals, _ in pairs)
    return urlunsplit((parts.scheme, f"{MASK if user else user}{at}{host}", parts.path, query, ""))


def bare_url(url: str) -> str:
    """Return a URL with nothing in it that may be secret: without user, password and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def secret_names(transport: Transport) -> tuple[str, ...]:
    """Return the names of the variables or headers whose values are stored encrypted."""
    if isinstance(transport, StdioTransport):
        return tuple(sorted(transport.env))
    if isinstance(transport, HttpTransport | GrpcTransport):
        return tuple(sorted(transport.headers))
    return ()
