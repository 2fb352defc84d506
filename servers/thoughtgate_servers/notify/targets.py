"""Where messages may go: named webhooks and allowed URL prefixes, nothing else.

Never shows a webhook's URL: for Slack and the like the URL is the secret.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from thoughtgate_servers.table import ToolFailed

_PORTS = {"http": 80, "https": 443}
ENVIRONMENT = "env:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One place to send to. `label` is for people and holds no secret."""

    url: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What the operator allows."""

    named: Mapping[str, str]
    allowed: Sequence[str]

    def by_name(self, name: str) -> Target:
        """Return the webhook of that name.

        Raises:
            ToolFailed: There is none.
        """
        if name not in self.named:
            known = ", ".join(sorted(self.named)) or "none"
            raise ToolFailed(message=f"no webhook of this name is configured; known: {known}")
        return Target(url=self.named[name], label=name)

    def by_url(self, url: str) -> Target:
        """Return a target for `url` when a prefix allows it.

        Raises:
            ToolFailed: It is no usable URL, or no prefix allows it.
        """
        asked = parsed(url)
        label = f"{asked.scheme}://{asked.hostname}"
        if any(_covers(parsed(prefix), asked) for prefix in self.allowed):
            return Target(url=url, label=label)
        raise ToolFailed(
            message=f"{label} is not allowed at this path: the operator allows URLs with --allow"
        )


def parsed(url: str) -> SplitResult:
    """Return the parts of an http(s) URL in which nothing is hidden.

    Raises:
        ToolFailed: It is none.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolFailed(message="not a URL") from None
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise ToolFailed(message="a URL starts with http:// or https:// and names a host")
    if "@" in parts.netloc or parts.fragment or not url.isascii() or not url.isprintable():
        raise ToolFailed(message="a URL here has no user, no fragment and only plain characters")
    path = unquote(unquote(parts.path))
    if "\\" in path or " " in url or any(part in {".", ".."} for part in path.split("/")):
        raise ToolFailed(message="a URL here has no dots or backslashes as parts of its path")
    return parts


def named(option: str) -> tuple[str, str]:
    """Return (name, URL) of an option NAME=URL or NAME=env:VARIABLE.

    Raises:
        ToolFailed: It is neither, or the URL cannot be used.
    """
    name, equals, url = option.partition("=")
    if not equals or not name:
        raise ToolFailed(message="--webhook wants NAME=URL or NAME=env:VARIABLE")
    if url.startswith(ENVIRONMENT):
        variable = url.removeprefix(ENVIRONMENT)
        url = os.environ.get(variable, "")
        if not url:
            raise ToolFailed(message=f"--webhook {name}: the variable {variable} is not set")
    parsed(url)
    return name, url


def _covers(prefix: SplitResult, asked: SplitResult) -> bool:
    if (prefix.scheme, prefix.hostname) != (asked.scheme, asked.hostname):
        return False
    if (prefix.port or _PORTS[prefix.scheme]) != (asked.port or _PORTS[asked.scheme]):
        return False
    allowed = prefix.path or "/"
    path = asked.path or "/"
    # a prefix ends at a slash: /hook allows /hook and /hook/x, not /hooks
    return path == allowed or path.startswith(allowed.rstrip("/") + "/")
