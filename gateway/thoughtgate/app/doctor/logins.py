"""The logins at servers, used as they are.

Never renews one: that would change the registry, and might end the login for a running gateway.
"""

from collections.abc import Iterable, Mapping

from thoughtgate.app.doctor.findings import Finding
from thoughtgate.core.errors import UpstreamDenied
from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.upstream.auth import NOTHING, Account, Login, advice


class HeldLogins:
    """The `Credentials` of the doctor: what is held is sent, until it is refused."""

    def __init__(self, logins: Iterable[Login]) -> None:
        self._logins = {login.account: login for login in logins}

    def of(self, server: Server) -> Login | None:
        """Return the login at a server, None when there is none."""
        if not isinstance(server.transport, HttpTransport):
            return None
        return self._logins.get(Account(server.name, server.transport.url))

    def headers(self, account: Account) -> Mapping[str, str] | None:
        """Return what to send, however old it is."""
        login = self._logins.get(account)
        return NOTHING if login is None else login.headers

    def scope(self, account: Account) -> str:
        """Return the scope that the login has, empty when there is none."""
        login = self._logins.get(account)
        return "" if login is None else login.scope

    async def renewed(
        self, account: Account, refused: Mapping[str, str] | None
    ) -> Mapping[str, str]:
        """Refuse: nothing is renewed here.

        Raises:
            UpstreamDenied: Always.
        """
        del refused
        raise UpstreamDenied(message=f"the server wants a login; {advice(account.server)}")


def judged_login(login: Login, now: float) -> Finding | None:
    """Return that a login is over, None when it may serve; `now` is in Unix seconds."""
    if login.refused:
        return over(login.account.server, f"its login is over: {login.refused}")
    if not login.renewable and now >= login.renew_at:
        return over(login.account.server, "its login has ended and cannot be renewed")
    return None


def over(server: str, what: str) -> Finding:
    """Return the finding that somebody has to log in again."""
    return Finding(
        code="login_expired",
        where=f"server {server}",
        what=what,
        mend=f"thoughtgate server login {server}",
    )
