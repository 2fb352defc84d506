"""What a server says of its own accord on one link, and to whom each of it goes.

Never tells one client what belongs to another: what cannot be placed is counted and dropped.
"""

from collections.abc import Callable

from thoughtgate.core.calls import Call, Notice, NoticeKind
from thoughtgate.core.json import JsonObject
from thoughtgate.upstream.home import Home, other
from thoughtgate.upstream.ports import Changed, Counts
from thoughtgate.upstream.questions import Asker, Questions
from thoughtgate.wire import methods, stateless
from thoughtgate.wire.messages import Notification, Request

_CHANGES = {
    methods.TOOLS_CHANGED: "tools",
    methods.PROMPTS_CHANGED: "prompts",
    methods.RESOURCES_CHANGED: "resources",
}


class Hearing:
    """One link's ear; `send` sends a message of ours to its server, None where none can be sent.

    `level` is the log level that the server was told, `changed` runs when a list has changed.
    """

    def __init__(
        self,
        home: Home,
        declared: JsonObject,
        counts: Counts,
        send: Callable[[bytes], None] | None = None,
    ) -> None:
        self.home = home
        self.counts = counts
        self.level: str | None = None
        self.changed: Changed | None = None
        self.calls: dict[int, Call] = {}
        self.questions = Questions(home.server, declared, counts, send or _drop, self._guess)
        self._deaf = send is None
        self._agreements: dict[str, Callable[[JsonObject], None]] = {}

    def over(self, id_: int) -> None:
        """Learn that a call has ended, with or without a result."""
        self.calls.pop(id_, None)
        self.questions.call_over(id_)

    def close(self) -> None:
        """Learn that the link is over."""
        self.questions.close()

    def asked(self, message: Request, call: int | None) -> None:
        """Take a request of the server's; `call` is ours on whose stream it came, if any."""
        if self._deaf:
            self.counts.refused += 1
            return
        in_call = self.calls.get(call) if call is not None else None
        if in_call is None:
            self.questions.take(message, None)
        else:
            asker = Asker(listener=in_call.listener, call=call, sure=True)
            self.questions.take(message, asker)

    def told(self, message: Notification, call: Call | None) -> Notice | None:
        """Take a notification; return what is to be delivered to `call`, which it belongs to.

        Progress is not for here: only a link knows its tokens.
        """
        method, params = message.method, message.params
        if method == methods.LOG:
            return self._log(params, call)
        if method in _CHANGES:
            if self.changed is not None:
                self.changed(_CHANGES[method])
        elif method == methods.RESOURCE_UPDATED:
            notice = other(self.home.server, method, _without_reserved(params))
            self.home.updated(notice, self.counts)
        elif method == methods.CANCELLED:
            self.questions.cancel(methods.read_cancelled(params))
        elif method == methods.ACKNOWLEDGED:
            self._agreed(params)
        else:
            notice = other(self.home.server, method, _without_reserved(params))
            if call is not None:
                return notice
            self.home.tell(notice, self.counts)
        return None

    def expect(self, id_: int, agreed: Callable[[JsonObject], None]) -> None:
        """Have `agreed` take what the server agrees to send for subscription `id_`."""
        self._agreements[str(id_)] = agreed

    def forget(self, id_: int) -> None:
        """Expect nothing of a subscription any more."""
        self._agreements.pop(str(id_), None)

    def _guess(self) -> Asker | None:
        """Return whom to ask where the server does not say: the youngest call's client.

        A call that is asking already comes second: most ask for one thing at a time.
        """
        asking = self.questions.calls
        for id_ in sorted(self.calls, key=lambda id_: (id_ not in asking, id_), reverse=True):
            return Asker(listener=self.calls[id_].listener, call=id_)
        client = self.home.client
        return None if client is None else Asker(listener=client)

    def _log(self, params: JsonObject, call: Call | None) -> Notice | None:
        notice = Notice(kind=NoticeKind.LOG, params=params)
        if call is not None:
            return notice if methods.loud_enough(params, call.log_level) else None
        if methods.loud_enough(params, self.level):
            self.home.tell(notice, self.counts)
        return None

    def _agreed(self, params: JsonObject) -> None:
        meta = params.get("_meta")
        id_ = meta.get(stateless.SUBSCRIPTION_KEY) if type(meta) is dict else None
        agreed = self._agreements.get(str(id_))
        filter_ = params.get("notifications")
        if agreed is not None:
            agreed(filter_ if type(filter_) is dict else {})


def _drop(message: bytes) -> None:
    """Send nothing: the server cannot be answered here."""


def _without_reserved(params: JsonObject) -> JsonObject:
    """Return the params without what belongs to this hop, such as a subscription's id."""
    meta = params.get("_meta")
    if type(meta) is not dict:
        return params
    kept = {name: value for name, value in meta.items() if not name.startswith(methods.RESERVED)}
    if len(kept) == len(meta):
        return params
    rest = {name: value for name, value in params.items() if name != "_meta"}
    return {**rest, "_meta": kept} if kept else rest
