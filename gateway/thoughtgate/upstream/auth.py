"""A login at a tool server: tokens, and the client that they were given to.

Never sent anywhere but to the server and the authorization server that it names, and never shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from thoughtgate.core.errors import UpstreamDenied

NOTHING: Mapping[str, str] = MappingProxyType({})
"""The headers of who is not logged in."""

EARLY = 60.0
"""Seconds before its end that a token is renewed; a tenth of its life if that is shorter."""


class ScopeMissing(UpstreamDenied):
    """The login is good, but not for this call; for others it may be."""


class Account(NamedTuple):
    """Whom a login is for: a server by its name, at one URL."""

    server: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """Who we are to an authorization server.

    `method` is how the client proves itself (`none`, `client_secret_basic`, `client_secret_post`);
    `given` says that a person named it, so that no other may take its place.
    """

    id: str
    secret: str = field(default="", repr=False)
    method: str = "none"
    given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What a login gave. Times are Unix seconds.

    `expires_at` is None when the server did not say; `scope` what was granted, `asked_scope` what
    a person asked for; `revoke_url` is empty where tokens cannot be given back; `machine` says
    that the client's own credentials are enough for another token; `refused` why it is over.
    """

    account: Account = field(repr=False)
    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    issued_at: float = 0.0
    expires_at: float | None = None
    scope: str = ""
    asked_scope: str = ""
    client: OAuthClient
    issuer: str = ""
    resource: str = field(default="", repr=False)
    token_url: str = ""
    revoke_url: str = ""
    machine: bool = False
    refused: str = ""
    version: int = 0

    @property
    def headers(self) -> Mapping[str, str]:
        """Return what is sent with every request."""
        return {"authorization": f"Bearer {self.access_token}"}

    @property
    def renewable(self) -> bool:
        """Say whether another token can be had without a person."""
        return not self.refused and (self.machine or bool(self.refresh_token))

    @property
    def renew_at(self) -> float:
        """Return when it should be renewed, or has ended; never, if nothing was said."""
        if self.refused:
            return 0.0
        if self.expires_at is None:
            return float("inf")
        early = min(EARLY, (self.expires_at - self.issued_at) / 10)
        return self.expires_at - early if self.renewable else self.expires_at


def advice(server: str) -> str:
    """Return what to do where a login is missing or over."""
    return f"run thoughtgate server login {server}"
