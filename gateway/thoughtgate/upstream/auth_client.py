"""An HTTP client that is logged in at one server.

Never sends the login anywhere else, and repeats a request only after a 401, which proves that it
was not carried out.
"""

import re
from collections.abc import Mapping

from thoughtgate.core.errors import UpstreamDenied
from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.upstream.auth import Account, ScopeMissing, advice
from thoughtgate.upstream.http_rules import target
from thoughtgate.upstream.ports import Credentials, HttpClient, HttpReply, HttpRequest

_INSUFFICIENT = re.compile(r'\berror="?insufficient_scope\b')
_SCOPE = re.compile(r'\bscope="([\x21\x23-\x5b\x5d-\x7e ]{1,400})"')
_SAID = re.compile(r'\berror_description="([\x20\x21\x23-\x5b\x5d-\x7e]{1,200})"')


def authorized(client: HttpClient, server: Server, credentials: Credentials | None) -> HttpClient:
    """Return a client that is logged in at a server, unless that has a header of its own for it."""
    transport = server.transport
    if credentials is None or not isinstance(transport, HttpTransport):
        return client
    if any(name.lower() == "authorization" for name in transport.headers):
        return client
    return AuthorizedClient(client, Account(server.name, transport.url), credentials)


class AuthorizedClient:
    """An `HttpClient` around another one, which it does not close."""

    def __init__(self, inner: HttpClient, account: Account, credentials: Credentials) -> None:
        self._inner = inner
        self._account = account
        self._credentials = credentials
        self._origin = target(account.url).origin

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send with the login, and once more with a renewed one; see `HttpClient.send`.

        Raises:
            UpstreamDenied: There is no login, it is over, or it lacks a scope.
        """
        if request.url != self._account.url and target(request.url).origin != self._origin:
            return await self._inner.send(request)
        headers = self._credentials.headers(self._account)
        if headers is None:
            headers = await self._credentials.renewed(self._account, None)
        reply = await self._inner.send(_with(request, headers))
        if reply.status == 401:
            reply.body.release()
            headers = await self._credentials.renewed(self._account, headers)
            reply = await self._inner.send(_with(request, headers))
        if reply.status in {401, 403}:
            self._check(reply)
        return reply

    async def aclose(self) -> None:
        """Do nothing: the client inside belongs to others too."""

    def _check(self, reply: HttpReply) -> None:
        """Say what is wrong with the login, where the server says that it is the login.

        Raises:
            UpstreamDenied: What it is.
        """
        challenge = reply.headers.get("www-authenticate", "")
        way = advice(self._account.server)
        if reply.status == 401:
            reply.body.release()
            raise UpstreamDenied(message=f"the server refuses the renewed login too; {way}")
        if _INSUFFICIENT.search(challenge):
            reply.body.release()
            wanted = _SCOPE.search(challenge)
            if wanted is None:
                said = _SAID.search(challenge)
                why = f" ({said[1]})" if said else ""
                raise UpstreamDenied(
                    message=f"the login lacks a scope{why}; {way} with its --scope"
                )
            known = self._credentials.scope(self._account).split()
            every = " ".join(dict.fromkeys([*known, *wanted[1].split()]))
            raise ScopeMissing(
                message=f'the login lacks the scope "{wanted[1]}"; {way} --scope "{every}"'
            )


def _with(request: HttpRequest, headers: Mapping[str, str]) -> HttpRequest:
    if not headers:
        return request
    return HttpRequest(
        method=request.method,
        url=request.url,
        headers={**request.headers, **headers},
        body=request.body,
    )
