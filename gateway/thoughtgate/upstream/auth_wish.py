"""A login that somebody wants.

Never a token: those come by `auth_flow`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from thoughtgate.upstream.auth import Account, OAuthClient
from thoughtgate.upstream.auth_callback import PATIENCE
from thoughtgate.upstream.http_exchange import ACCEPT_BOTH, JSON_TYPE
from thoughtgate.upstream.http_rules import server_headers
from thoughtgate.wire import handshake


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A login that somebody wants.

    `headers` are the server's own. `client` is a client that a person named, `issuer` the
    authorization server that it belongs to; `scope` is what to ask for instead of what the server
    says; `machine` logs the client itself in, without a person; `port` is where the browser comes
    back to, 0 for any; `patience` how many seconds a person may take.
    """

    account: Account
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: OAuthClient | None = None
    issuer: str = ""
    scope: str = ""
    machine: bool = False
    port: int = 0
    patience: float = PATIENCE

    @property
    def by_url(self) -> bool:
        """Say whether the client is a URL, under which its metadata stand."""
        return bool(
            self.client and self.client.id.startswith("https://") and not self.client.secret
        )


def headers_of(wish: Wish) -> dict[str, str]:
    """Return the headers of a request to the server itself, without a login."""
    return {
        **server_headers(wish.headers),
        "content-type": JSON_TYPE,
        "accept": ACCEPT_BOTH,
        handshake.VERSION_HEADER: handshake.LATEST,
    }
