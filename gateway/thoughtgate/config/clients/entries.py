"""What stands in a client's file for the gateway: written, recognised and read back.

Never holds a secret: an entry names a command or a URL, and our own variables.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from urllib.parse import SplitResult, urlsplit

from thoughtgate.config.clients.places import Client
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.hosts import is_loopback

DEFAULT_NAME = "thoughtgate"
"""The name of the entry, unless another is asked for."""

URL_KEYS = ("url", "serverUrl", "httpUrl")
"""The keys that hold the URL of a server, in one client's file or another's."""

_ENDPOINT = re.compile(r"/mcp(?:/([A-Za-z0-9_-]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """A gateway that the client starts for itself, on standard input and output."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A gateway that runs already, at a URL."""

    url: str


Target = Pipe | Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """An entry that leads to a gateway; `domain` is empty when the URL does not tell it."""

    name: str
    how: str
    domain: str
    target: str


def pipe(program: Sequence[str], domain: str, config: str, env: Mapping[str, str]) -> Pipe:
    """Return how a client starts the gateway `program` for a domain; `config` may be empty."""
    command, *first = program
    args = [*first, "serve", "--stdio", "--domain", domain]
    return Pipe(command=command, args=(*args, *(["--config", config] if config else [])), env=env)


def endpoint(host: str, port: int, domain: str) -> Endpoint:
    """Return the URL of a domain of the gateway that listens at a host and port."""
    shown = f"[{host}]" if ":" in host else host
    path = "/mcp" if domain == DEFAULT_DOMAIN else f"/mcp/{domain}"
    return Endpoint(url=f"http://{shown}:{port}{path}")


def entry_for(client: Client, target: Target) -> dict[str, Any]:
    """Return a target as the client wants it written.

    Raises:
        ConfigError: The client's file knows no servers by URL.
    """
    if isinstance(target, Endpoint):
        if not client.url_key:
            raise ConfigError(
                message=f"the file of {client.title} takes commands only; connect it without "
                "--http and --url, or add the URL in its settings as a connector"
            )
        kind = {"type": "http"} if "http" in client.typed else {}
        return {**kind, client.url_key: target.url}
    kind = {"type": "stdio"} if "stdio" in client.typed else {}
    env = {"env": dict(target.env)} if target.env else {}
    return {**kind, "command": target.command, "args": list(target.args), **env}


def connection(name: str, entry: object, port: int = 0) -> Connection | None:
    """Return what an entry leads to; None when it is another server's.

    One that starts `thoughtgate serve` is ours, and so is a URL under a name that begins
    with ours, or one like ours on this machine at `port`.
    """
    argv = _argv(entry)
    if argv:
        if not starts_gateway(argv):
            return None
        shown = " ".join(argv)
        return Connection(name=name, how="stdio", domain=_domain_of(argv), target=shown)
    url = _url_of(entry)
    if not url:
        return None
    parts = _parts(url)
    found = _ENDPOINT.fullmatch(parts.path)
    local = is_loopback(parts.hostname or "") and port and parts.port == port
    if not name.startswith(DEFAULT_NAME) and not (found and local):
        return None
    domain = (found[1] or DEFAULT_DOMAIN) if found else ""
    return Connection(name=name, how="http", domain=domain, target=url)


def starts_gateway(argv: Sequence[str]) -> bool:
    """Say whether a command starts a gateway, by its script or by what runs its package."""
    if not argv:
        return False
    program, *args = argv
    named = PurePath(program).stem == "thoughtgate" or "thoughtgate" in args[:4]
    return named and "serve" in args


def words_of(entry: Mapping[str, Any]) -> set[str]:
    """Return the texts of an entry that are ours to show: all but other people's variables."""
    words = {value for value in entry.values() if isinstance(value, str)}
    return {*words, *_argv(entry)}


def _url_of(entry: object) -> str:
    """Return the URL of an entry, empty when it has none."""
    if not isinstance(entry, Mapping):
        return ""
    return next((str(entry[key]) for key in URL_KEYS if isinstance(entry.get(key), str)), "")


def _argv(entry: object) -> list[str]:
    """Return the command line of an entry, empty when it has none; Zed once nested it."""
    if not isinstance(entry, Mapping):
        return []
    nested = entry.get("command")
    command, args = entry.get("command"), entry.get("args", [])
    if isinstance(nested, Mapping):
        command, args = nested.get("path"), nested.get("args", [])
    if not isinstance(command, str) or not isinstance(args, Sequence) or isinstance(args, str):
        return []
    return [command, *map(str, args)]


def _domain_of(argv: Sequence[str]) -> str:
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == "--domain" and following:
            return following
        if word.startswith("--domain="):
            return word.removeprefix("--domain=")
    return DEFAULT_DOMAIN


def _parts(url: str) -> SplitResult:
    """Return the parts of a URL, all empty when it is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # read only now
    except ValueError:
        return urlsplit("")
    return parts
