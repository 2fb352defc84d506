"""The requests of a server on one link, while those whom it asks think about them.

Never blocks the reader of a link, and never asks for what was not declared.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from thoughtgate.core.calls import Listener, Question
from thoughtgate.core.errors import CallerReplied, GateError, NotAsked
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.upstream.ports import Counts
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import MessageId, Request, encode_failure, encode_reply
from thoughtgate.wire.requests import offers

_log = logging.getLogger(__name__)

MAX_OPEN = 32
"""Questions of one link that may wait for their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whom to ask. `call` is our id of the call in which it is; None outside of any.

    `sure` says that the server named the call, by its stream; else it was guessed.
    """

    listener: Listener
    call: int | None = None
    sure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    message: Request
    asker: Asker
    task: asyncio.Task[None]


class Questions:
    """Everything that one link's server asks; `guess` says whom where the server does not."""

    def __init__(
        self,
        server: str,
        declared: JsonObject,
        counts: Counts,
        send: Callable[[bytes], None],
        guess: Callable[[], Asker | None],
    ) -> None:
        self._server = server
        self._declared = declared
        self._counts = counts
        self._send = send
        self._guess = guess
        self._open: dict[tuple[type, MessageId], _Open] = {}

    def __len__(self) -> int:
        """Return how many questions wait for an answer."""
        return len(self._open)

    @property
    def calls(self) -> set[int | None]:
        """Return the calls in which something is asked now."""
        return {asked.asker.call for asked in self._open.values()}

    def take(self, message: Request, asker: Asker | None) -> None:
        """Answer a request, now or when the one who is asked has answered."""
        if message.method == methods.PING:
            self._send(encode_reply(message.id, b"{}"))
        elif not offers(self._declared, message.method, message.params):
            self._refuse(message, codes.METHOD_NOT_FOUND, "not offered by this client")
        elif _key(message.id) in self._open:
            self._refuse(message, codes.INVALID_REQUEST, "a request with this id is in progress")
        elif len(self._open) >= MAX_OPEN:
            self._refuse(message, codes.INTERNAL_ERROR, f"more than {MAX_OPEN} requests at once")
        else:
            self._ask(message, asker)

    def cancel(self, id_: JsonValue) -> None:
        """Take a question back, as the server wishes; it wants no answer any more."""
        taken = self._open.pop(_key(id_), None) if isinstance(id_, str | int) else None
        if taken is not None:
            taken.task.cancel()

    def call_over(self, call: int) -> None:
        """Take back what was asked in a call that has ended; ask another where it was guessed."""
        if not self._open:
            return
        for key, asked in list(self._open.items()):
            if asked.asker.call == call:
                del self._open[key]
                asked.task.cancel()
                if asked.asker.sure:
                    self._refuse(asked.message, codes.INTERNAL_ERROR, "the call is over")
                else:
                    self._ask(asked.message, None)

    def close(self) -> None:
        """Take all questions back: the link is over."""
        taken, self._open = self._open, {}
        for asked in taken.values():
            asked.task.cancel()

    def _ask(self, message: Request, asker: Asker | None) -> None:
        asker = asker or self._guess()
        if asker is None:
            self._refuse(message, codes.METHOD_NOT_FOUND, "nobody is there to be asked")
            return
        task = asyncio.get_running_loop().create_task(self._answer(message, asker.listener))
        self._open[_key(message.id)] = _Open(message=message, asker=asker, task=task)
        task.add_done_callback(partial(self._answered, message))

    async def _answer(self, message: Request, listener: Listener) -> None:
        question = Question(
            method=message.method, params=_without_token(message.params), server=self._server
        )
        try:
            body = encode_reply(message.id, await listener.ask(question))
        except CallerReplied as error:
            body = encode_failure(message.id, error.rpc_code, error.rpc_message, error.rpc_data)
        except NotAsked as error:
            body = encode_failure(message.id, codes.METHOD_NOT_FOUND, error.message)
        except GateError as error:
            body = encode_failure(message.id, codes.INTERNAL_ERROR, error.message)
        self._send(body)

    def _answered(self, message: Request, task: "asyncio.Task[None]") -> None:
        asked = self._open.get(_key(message.id))
        if asked is not None and asked.task is task:
            del self._open[_key(message.id)]
        if not task.cancelled() and task.exception() is not None:
            _log.error("server %s: a question failed", self._server, exc_info=task.exception())
            self._send(encode_failure(message.id, codes.INTERNAL_ERROR, "internal error"))

    def _refuse(self, message: Request, code: int, reason: str) -> None:
        self._counts.refused += 1
        self._send(encode_failure(message.id, code, reason))


def _key(id_: MessageId) -> tuple[type, MessageId]:
    return (type(id_), id_)


def _without_token(params: JsonObject) -> JsonObject:
    """Return the params without the server's progress token, which means nothing beyond us."""
    meta = params.get("_meta")
    if type(meta) is not dict or "progressToken" not in meta:
        return params
    kept = {name: value for name, value in meta.items() if name != "progressToken"}
    rest = {name: value for name, value in params.items() if name != "_meta"}
    return {**rest, "_meta": kept} if kept else rest
