"""A subscription of the stateless era: what it was promised, and the frames that keep it.

Never promises what cannot be kept: a resource that no server here has is left out.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from thoughtgate.core.calls import Notice, NoticeKind, Question
from thoughtgate.core.errors import GateError, NotAsked
from thoughtgate.surface.desk import Asker, Desk
from thoughtgate.surface.mailbox import Changes, Mailbox
from thoughtgate.surface.ports import Gateway
from thoughtgate.surface.relay import Line, Look, shown
from thoughtgate.wire import methods, stateless
from thoughtgate.wire.messages import MessageId, Request

_AT_ONCE = 8
"""Resources that one subscription asks servers to follow at the same time."""

_METHODS = {
    "tools": methods.TOOLS_CHANGED,
    "prompts": methods.PROMPTS_CHANGED,
    "resources": methods.RESOURCES_CHANGED,
}


def frames(id_: MessageId, wanted: stateless.Filter) -> Mapping[str, bytes]:
    """Return the frame that tells of each list that a subscription asks for."""
    return {
        name: stateless.subscribed(id_, method, {})
        for name, method in _METHODS.items()
        if name in wanted.lists
    }


class Listening:
    """Opens and ends subscriptions, over any transport."""

    def __init__(self, gateway: Gateway, desk: Desk, changes: Changes) -> None:
        self._gateway = gateway
        self._desk = desk
        self._changes = changes

    @asynccontextmanager
    async def opened(self, request: Request, asker: Asker) -> AsyncIterator[tuple[Mailbox, bytes]]:
        """Give a subscription's mailbox and its first frame; everything is dropped at the end.

        Raises:
            BadMessage: The filter cannot be read.
        """
        wanted = stateless.read_listen(request.params)
        mailbox = self._changes.join(asker.domain, frames(request.id, wanted))
        look = partial(self._desk.view, asker.domain)
        subscriber = Subscriber(request.id, mailbox, look)
        try:
            kept = await self._followed(wanted.resources, asker, subscriber)
            honoured = replace(wanted, resources=kept)
            yield mailbox, stateless.acknowledged(request.id, honoured)
        finally:
            self._changes.leave(mailbox)
            if wanted.resources:
                self._gateway.leave(subscriber)

    async def _followed(
        self, uris: tuple[str, ...], asker: Asker, subscriber: "Subscriber"
    ) -> tuple[str, ...]:
        """Return the resources of which servers now tell a subscriber."""
        if not uris:
            return ()
        room = asyncio.Semaphore(_AT_ONCE)  # one dead server shall not hold up all the others

        async def follow(uri: str) -> bool:
            async with room:
                return await self._follows(uri, asker, subscriber)

        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(follow(uri)) for uri in uris]
        return tuple(uri for uri, task in zip(uris, asked, strict=True) if task.result())

    async def _follows(self, uri: str, asker: Asker, subscriber: "Subscriber") -> bool:
        """Tell whether a server now tells a subscriber of a resource."""
        line = Line(emit=_nothing, lasting=subscriber)
        try:
            await self._desk.call(methods.SUBSCRIBE, {"uri": uri}, asker, line)
        except GateError:
            return False
        return True


async def _nothing(frame: bytes) -> None:
    del frame  # the subscription is not acknowledged yet: nothing may come before


class Subscriber:
    """The client of one subscription, as servers tell it of resources."""

    def __init__(self, id_: MessageId, mailbox: Mailbox, look: Look) -> None:
        self._id = id_
        self._mailbox = mailbox
        self._look = look

    async def notify(self, notice: Notice) -> None:
        """Put one notice where the subscription's stream takes it, under its id."""
        if notice.kind is NoticeKind.OTHER:
            told = shown(notice, self._look)
            self._mailbox.post(stateless.subscribed(self._id, told.method, told.params))

    async def ask(self, question: Question) -> bytes:
        """Refuse: a subscription asks nothing.

        Raises:
            NotAsked: Always.
        """
        raise NotAsked(message=f"a subscription is not asked for {question.method[:80]}")
