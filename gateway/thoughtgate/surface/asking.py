"""Questions to one client of the handshake era, each waiting for its answer.

Never asks what the client did not declare, and never waits for ever: whoever asks hears of it.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Final

from thoughtgate.core.calls import Question
from thoughtgate.core.errors import CallerReplied, NotAsked
from thoughtgate.core.json import JsonObject
from thoughtgate.wire import methods
from thoughtgate.wire.messages import Failure, Reply, encode_notification, encode_request
from thoughtgate.wire.requests import offers

Emit = Callable[[bytes], Awaitable[None]]
"""Sends one message to the caller; returns when there is room for the next."""

PATIENCE: Final = 600.0
"""Seconds that a client, and the person before it, may take to answer."""

MOST: Final = 32
"""Questions that may be open to one client."""

PARTING: Final = 1.0
"""Seconds that taking a question back may take: the client may not read any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    owner: object
    emit: Emit
    answer: asyncio.Future[bytes]


class Asks:
    """The open questions to one client; `strays` counts answers to none of them."""

    __slots__ = ("_capabilities", "_closed", "_numbers", "_open", "_patience", "_prefix", "strays")

    def __init__(self, capabilities: JsonObject, *, patience: float = PATIENCE) -> None:
        self.strays = 0
        self._capabilities = capabilities
        self._patience = patience
        self._prefix = secrets.token_hex(4)
        self._numbers = count(1)
        self._open: dict[str, _Asked] = {}
        self._closed = False

    def __len__(self) -> int:
        """Return how many questions are open."""
        return len(self._open)

    async def ask(self, question: Question, emit: Emit, owner: object) -> bytes:
        """Return the client's answer to a question that is sent by `emit`.

        Raises:
            CallerReplied: The client answered with an error.
            NotAsked: It cannot be asked this, or did not answer in time.
        """
        self._check(question)
        id_ = f"{self._prefix}-{next(self._numbers)}"
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open[id_] = _Asked(owner=owner, emit=emit, answer=answer)
        try:
            async with asyncio.timeout(self._patience):
                await emit(encode_request(id_, question.method, _params(question, id_)))
                return await answer
        except TimeoutError:
            message = f"the client did not answer {question.method} in {self._patience:g} seconds"
            raise NotAsked(message=message) from None
        finally:
            await self._take_back(id_)

    def answered(self, message: Reply | Failure) -> None:
        """Give an answer to whoever waits for it; one that nobody waits for is counted."""
        asked = self._open.pop(message.id, None) if isinstance(message.id, str) else None
        if asked is None or asked.answer.done():
            self.strays += 1
        elif isinstance(message, Reply):
            asked.answer.set_result(message.result)
        else:
            asked.answer.set_exception(
                CallerReplied(
                    rpc_code=message.code, rpc_message=message.message, rpc_data=message.data
                )
            )

    async def retract(self, owner: object) -> None:
        """Take back every question of one asker whose call is over."""
        for id_ in [id_ for id_, asked in self._open.items() if asked.owner is owner]:
            asked = self._open[id_]
            await self._take_back(id_)
            _fail(asked, "the call that asked is over")

    def close(self) -> None:
        """Answer every question, and all that are still to come: the client is gone."""
        self._closed = True
        for asked in self._open.values():
            _fail(asked, "the client is gone")
        self._open.clear()

    def _check(self, question: Question) -> None:
        if self._closed:
            raise NotAsked(message="the client is gone")
        if not offers(self._capabilities, question.method, question.params):
            message = f"the client did not declare that it answers {question.method[:80]}"
            raise NotAsked(message=message)
        if len(self._open) >= MOST:
            raise NotAsked(message=f"{MOST} questions to this client are open; ask again later")

    async def _take_back(self, id_: str) -> None:
        """Tell the client not to answer any more, unless it has."""
        asked = self._open.pop(id_, None)
        if asked is None:
            return
        params = {"requestId": id_, "reason": "nobody waits for the answer"}
        try:
            async with asyncio.timeout(PARTING):
                await asked.emit(encode_notification(methods.CANCELLED, params))
        except (TimeoutError, OSError):  # it does not read any more, or is gone
            return


def _fail(asked: _Asked, message: str) -> None:
    if not asked.answer.done():
        asked.answer.set_exception(NotAsked(message=message))
        asked.answer.exception()  # who asked may be gone as well


def _params(question: Question, id_: str) -> JsonObject:
    """Return the params; in this era a URL that shall be opened needs an id of its own."""
    params: JsonObject = question.params
    if question.method == methods.ELICIT and params.get("mode") == "url":
        return {"elicitationId": id_, **params}
    return params
