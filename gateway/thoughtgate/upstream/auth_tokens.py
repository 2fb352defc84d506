"""Asking a token endpoint: another token for a login, or a token given back.

Never follows a redirect, and never puts anything of a request or a token into an error.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from thoughtgate.core.errors import Malformed, UpstreamDenied, UpstreamError, UpstreamGarbled
from thoughtgate.upstream.auth import Login, OAuthClient
from thoughtgate.upstream.ports import HttpClient, HttpReply, HttpRequest
from thoughtgate.wire.strict import parse

_LONGEST_BODY = 256 * 1024
_CODE = re.compile(r"[a-z_]{1,60}")

_FINAL = frozenset({
    "access_denied", "consent_required", "interaction_required", "invalid_client", "invalid_grant",
    "invalid_scope", "invalid_target", "login_required", "unauthorized_client",
    "unsupported_grant_type",
})  # fmt: skip
"""The error codes after which asking again in the same way is of no use."""


class LoginOver(UpstreamDenied):
    """The authorization server gives no more tokens for this login."""


async def renewed(client: HttpClient, login: Login, now: float) -> Login:
    """Return the login with another token, by its refresh token or by the client's credentials.

    Raises:
        LoginOver: The authorization server refuses, for good.
        UpstreamError: It could not be asked, or its answer could not be read.
    """
    form = {"grant_type": "client_credentials", "scope": login.asked_scope or login.scope}
    if login.refresh_token:
        form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
    form["resource"] = login.resource
    reply = await _post(client, login.token_url, form, login.client)
    return _login_of(login, await _answer(reply), now)


async def revoke(client: HttpClient, login: Login) -> None:
    """Give the tokens of a login back, the longest-lived one first.

    Raises:
        UpstreamError: The authorization server did not take one of them.
    """
    for kind in ("refresh_token", "access_token"):
        token = login.refresh_token if kind == "refresh_token" else login.access_token
        if token:
            form = {"token": token, "token_type_hint": kind}
            reply = await _post(client, login.revoke_url, form, login.client)
            reply.body.release()
            if reply.status != 200:
                raise UpstreamGarbled(message=f"status {reply.status} for a token given back")


async def _post(
    client: HttpClient, url: str, form: Mapping[str, str], who: OAuthClient
) -> HttpReply:
    fields = {name: value for name, value in form.items() if value} | {"client_id": who.id}
    headers = {
        "user-agent": "thoughtgate",
        "accept": "application/json",
        "content-type": "application/x-www-form-urlencoded",
    }
    if who.secret and who.method == "client_secret_basic":
        pair = f"{quote(who.id, safe='')}:{quote(who.secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif who.secret and who.method == "client_secret_post":
        fields["client_secret"] = who.secret
    body = urlencode(fields).encode()
    return await client.send(HttpRequest(method="POST", url=url, headers=headers, body=body))


async def _answer(reply: HttpReply) -> Mapping[str, Any]:
    body = await reply.read(_LONGEST_BODY)
    try:
        value = parse(body)
    except Malformed:
        value = None
    found: Mapping[str, Any] = value if isinstance(value, dict) else {}
    if reply.status == 200:
        return found
    code = found.get("error")
    if isinstance(code, str) and _CODE.fullmatch(code):
        if code in _FINAL and 400 <= reply.status < 500:
            raise LoginOver(message=code)
        raise UpstreamGarbled(message=f"the authorization server says {code}")
    raise UpstreamGarbled(message=f"the authorization server says status {reply.status}")


def _login_of(login: Login, answer: Mapping[str, Any], now: float) -> Login:
    token, kind = answer.get("access_token"), answer.get("token_type")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise UpstreamGarbled(message="the authorization server gives no token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise UpstreamGarbled(message="the authorization server gives no bearer token")
    refresh, scope = answer.get("refresh_token"), answer.get("scope")
    return replace(
        login,
        access_token=token,
        refresh_token=refresh if isinstance(refresh, str) and refresh else login.refresh_token,
        scope=scope if isinstance(scope, str) else login.scope,
        issued_at=now,
        expires_at=expiry(answer.get("expires_in"), now),
    )


def expiry(seconds: object, now: float) -> float | None:
    """Return when a token ends, None when what the server said is no number of seconds.

    Some say 0 for a token that does not end; one that ended at once would be of no use.
    """
    text = str(seconds) if isinstance(seconds, int | str) else ""
    given = int(text) if text.isdecimal() and len(text) < 12 else 0
    return now + given if given else None


def told(error: UpstreamError) -> str:
    """Return why an authorization server gave no token, for a sentence."""
    return (
        f"the authorization server says {error.message}"
        if isinstance(error, LoginOver)
        else error.message
    )
