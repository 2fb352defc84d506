"""What a client is to be told outside of its calls, kept until its stream takes it.

Never grows without bound: changes of a list are told once however many there were, and of other
messages the oldest are dropped, and counted.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from thoughtgate.surface.bell import Bell
from thoughtgate.surface.ports import Changed, Gateway
from thoughtgate.wire import methods
from thoughtgate.wire.messages import encode_notification

MOST: Final = 256
"""Messages that wait for one client."""

MOST_BYTES: Final = 4 * 1024 * 1024

CHANGED: Final[Mapping[str, bytes]] = {
    "tools": encode_notification(methods.TOOLS_CHANGED),
    "prompts": encode_notification(methods.PROMPTS_CHANGED),
    "resources": encode_notification(methods.RESOURCES_CHANGED),
}
"""What a session's client is told of each list."""


class Reader:
    """Takes what is in a mailbox, until it ends, is replaced or the mailbox is closed."""

    __slots__ = ("_mailbox", "_over", "wake")

    def __init__(self, mailbox: "Mailbox") -> None:
        self._mailbox = mailbox
        self._over = False
        self.wake = Bell()

    def end(self) -> None:
        """Stop reading; what was not taken stays."""
        self._over = True
        self.wake.set()
        self._mailbox.detach(self)

    async def take(self, seconds: float | None) -> list[bytes] | None:
        """Return what there is, nothing after `seconds` of silence, None at the end."""
        if not self._over:
            try:
                async with asyncio.timeout(seconds):
                    await self.wake.wait()
            except TimeoutError:
                return []
        return self.taken()

    def taken(self) -> list[bytes] | None:
        """Return what there is by now, None at the end."""
        if self._over:
            return None
        self.wake.clear()
        return self._mailbox.empty()


class Mailbox:
    """One client's. `changed` is what to say of each list; of others it is not told."""

    __slots__ = (
        "_attended",
        "_changed",
        "_closed",
        "_flags",
        "_frames",
        "_reader",
        "_size",
        "domain",
        "dropped",
    )

    def __init__(self, domain: str, changed: Mapping[str, bytes] = CHANGED) -> None:
        self.domain = domain
        self.dropped = 0
        self._changed = changed
        self._flags: dict[str, None] = {}
        self._frames: list[bytes] = []
        self._size = 0
        self._reader: Reader | None = None
        self._attended: asyncio.Event | None = None
        self._closed = False

    def attach(self) -> Reader:
        """Return a new reader, who gets what nobody took yet; an older one ends."""
        if self._reader is not None:
            self._reader.end()
        reader = Reader(self)
        if self._closed:
            reader.end()
            return reader
        self._reader = reader
        self._greet()
        if self._flags or self._frames:
            reader.wake.set()
        return reader

    def detach(self, reader: Reader) -> None:
        """Forget a reader."""
        if self._reader is reader:
            self._reader = None

    async def attended(self, seconds: float) -> bool:
        """Tell whether somebody reads, or begins to within some seconds."""
        if self._reader is None and not self._closed:
            self._attended = self._attended or asyncio.Event()
            try:
                async with asyncio.timeout(seconds):
                    await self._attended.wait()
            except TimeoutError:
                return False
        return not self._closed

    def note(self, list_: str) -> None:
        """Note that a list changed."""
        if list_ in self._changed:
            self._flags[list_] = None
            self._rouse()

    def post(self, frame: bytes) -> None:
        """Put a message in; the oldest make room."""
        if self._closed:
            return
        self._frames.append(frame)
        self._size += len(frame)
        while len(self._frames) > MOST or (self._size > MOST_BYTES and len(self._frames) > 1):
            self._size -= len(self._frames.pop(0))
            self.dropped += 1
        self._rouse()

    def withdraw(self, frame: bytes) -> bool:
        """Take a message back; False when it is not there any more."""
        try:
            self._frames.remove(frame)
        except ValueError:
            return False
        self._size -= len(frame)
        return True

    def empty(self) -> list[bytes]:
        """Take everything out."""
        taken = [self._changed[name] for name in self._flags]
        taken.extend(self._frames)
        self._flags.clear()
        self._frames.clear()
        self._size = 0
        return taken

    def close(self) -> None:
        """End the reader for good."""
        self._closed = True
        self._greet()
        if self._reader is not None:
            self._reader.end()

    def _greet(self) -> None:
        """Tell those who wait for a reader: there is one, or there will be none."""
        if self._attended is not None:
            self._attended.set()
            self._attended = None

    def _rouse(self) -> None:
        if self._reader is not None:
            self._reader.wake.set()


class Changes:
    """Notes in the mailboxes of a domain when the gateway says that a list of its changed."""

    def __init__(self, gateway: Gateway) -> None:
        self._mailboxes: dict[str, set[Mailbox]] = {}
        self._closed = False
        self._unwatch = gateway.watch(self._changed)

    def join(self, domain: str, changed: Mapping[str, bytes] = CHANGED) -> Mailbox:
        """Return a new mailbox for a domain's client; it is closed when everything is."""
        mailbox = Mailbox(domain, changed)
        if self._closed:
            mailbox.close()
        else:
            self._mailboxes.setdefault(domain, set()).add(mailbox)
        return mailbox

    def leave(self, mailbox: Mailbox) -> None:
        """Close a mailbox and forget it."""
        mailbox.close()
        others = self._mailboxes.get(mailbox.domain, set())
        others.discard(mailbox)
        if not others:
            self._mailboxes.pop(mailbox.domain, None)

    def close(self) -> None:
        """Close every mailbox, which ends every stream, and stop watching."""
        if self._closed:
            return
        self._closed = True
        self._unwatch()
        for mailboxes in self._mailboxes.values():
            for mailbox in mailboxes:
                mailbox.close()
        self._mailboxes.clear()

    def _changed(self, changed: Changed) -> None:
        for domain, list_ in changed:
            for mailbox in self._mailboxes.get(domain, ()):
                mailbox.note(list_)
