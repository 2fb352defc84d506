"""Calls of the gateway's own people: the command line asks by the same path as every client.

Never skips a stage.
"""

import asyncio
import secrets
from collections.abc import Callable

from thoughtgate.calls.gateway import Gateway
from thoughtgate.core.calls import (
    LOCAL,
    Call,
    Notice,
    NoticeKind,
    Question,
    Result,
    Session,
    ToolName,
)
from thoughtgate.core.errors import ConfigError, NotAsked, UnknownTarget
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.views import View

CLI_SESSION = Session(
    id="", era=Era.STATELESS, version="", client={"name": "thoughtgate"}, origin="cli"
)


class NoticeLines:
    """A listener that turns notices into lines of text."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    async def notify(self, notice: Notice) -> None:
        """Say what a notice tells, in one line."""
        if notice.kind is NoticeKind.PROGRESS:
            done, total = notice.params.get("progress"), notice.params.get("total")
            share = f"{done}/{total}" if total is not None else f"{done}"
            message = str(notice.params.get("message") or "")
            told = message.startswith(f"{share} ")
            self._say(message if told else f"{share} {message}".rstrip())
        elif notice.kind is NoticeKind.LOG:
            self._say(f"{notice.params.get('level')}: {notice.params.get('data')}")

    async def ask(self, question: Question) -> bytes:
        """Refuse: nothing was declared that could be asked for."""
        raise NotAsked(message=f"the command line does not answer {question.method}")


def view_of(gateway: Gateway, domain: str) -> View:
    """Return what a domain shows.

    Raises:
        ConfigError: There is no such domain; a client would hear of an unknown target.
    """
    try:
        return gateway.view(domain)
    except UnknownTarget:
        raise ConfigError(
            message=f"no domain is named {domain[:80]}; see: thoughtgate domain list"
        ) from None


async def call_tool(
    gateway: Gateway,
    target: ToolName,
    arguments: JsonObject,
    *,
    seconds: float,
    say: Callable[[str], None],
) -> Result:
    """Call a tool as the local user and return its result.

    Raises:
        GateError: As the stages of the path say.
    """
    call = Call(
        id=secrets.token_hex(16),
        target=target,
        arguments=arguments,
        principal=LOCAL,
        session=CLI_SESSION,
        domain=target.domain,
        deadline=asyncio.get_running_loop().time() + seconds,
        listener=NoticeLines(say),
        meta={},
        log_level="info",
        wants_progress=True,
    )
    return await gateway.call(call)
