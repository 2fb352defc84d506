"""The two tools of the notify server: send a webhook, send to Slack.

Never sends twice under one idempotency key, not after a restart either, and never a message to a
place that the operator did not allow.
"""

import asyncio
import hashlib
import json
import sqlite3
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from thoughtgate_servers.notify.outbox import Attempt, Outbox, State
from thoughtgate_servers.notify.posting import Answered, NotSent, Posted, Poster
from thoughtgate_servers.notify.targets import Target, Targets
from thoughtgate_servers.notify.turns import Turns
from thoughtgate_servers.schemas import Schema, array, flag, integer, nullable, record, text
from thoughtgate_servers.table import CALL_ID, HONOURS, Effect, Reply, Request, Tool, ToolFailed

KEY = CALL_ID
"""Where in `_meta` a caller puts the key."""

MAX_BODY = 1_000_000

_KEY = text(
    "Sending again under the same key is answered from memory. _meta['thoughtgate/idempotencyKey'] "
    "does the same.",
    pattern="^[!-~]+$",
    maxLength=255,
)
_ANY_OBJECT: Schema = {"type": "object", "description": "The JSON body to send."}

WEBHOOK_INPUT = record(
    {"payload": _ANY_OBJECT},
    {
        "webhook": text("Name of a configured webhook.", minLength=1, maxLength=80),
        "url": text("An allowed URL, instead of webhook.", minLength=1, maxLength=2_000),
        "idempotency_key": _KEY,
    },
)
SLACK_INPUT = record(
    {"text": text("The message, Slack's mrkdwn.", minLength=1, maxLength=40_000)},
    {
        "webhook": text("Name of a configured webhook.", default="slack", maxLength=80),
        "blocks": array({"type": "object"}, "Block Kit blocks.", maxItems=50),
        "idempotency_key": _KEY,
    },
)
OUTPUT = record({
    "outcome": text(
        "delivered: answered with 2xx. refused: answered otherwise. not_sent: it never left. "
        "unknown: it may have arrived.",
        enum=["delivered", "refused", "not_sent", "unknown"],
    ),
    "status": nullable(integer("HTTP status.", minimum=100, maximum=599)),
    "target": text("Name of the webhook, or scheme and host of the URL."),
    "duplicate": flag("True when answered from memory: nothing was sent now."),
    "idempotency_key": nullable(text()),
    "response": text("Start of what the other side said."),
})


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyTools:
    """The tools over one set of targets and one outbox."""

    targets: Targets
    outbox: Outbox
    poster: Poster
    turns: Turns = field(default_factory=Turns)

    def table(self) -> tuple[Tool, ...]:
        """Return the rows of the server's table."""
        honours = {HONOURS: "key"}
        return (
            Tool(
                name="send_webhook",
                title="Send a webhook",
                description="POST a JSON object to a configured webhook or an allowed URL. With an "
                "idempotency key it is sent at most once, ever.",
                input_schema=WEBHOOK_INPUT,
                output_schema=OUTPUT,
                run=self.webhook,
                effect=Effect.WRITE,
                open_world=True,
                meta=honours,
            ),
            Tool(
                name="send_slack",
                title="Send to Slack",
                description="POST a message to a configured Slack webhook. With an idempotency key "
                "it is sent at most once, ever.",
                input_schema=SLACK_INPUT,
                output_schema=OUTPUT,
                run=self.slack,
                effect=Effect.WRITE,
                open_world=True,
                meta=honours,
            ),
        )

    async def webhook(self, request: Request) -> Reply:
        """Send a JSON object."""
        asked = request.arguments
        if ("webhook" in asked) == ("url" in asked):
            raise ToolFailed(message="give either webhook or url, one of the two")
        if "webhook" in asked:
            target = self.targets.by_name(asked["webhook"])
        else:
            target = self.targets.by_url(asked["url"])
        return await self._send(target, asked["payload"], request)

    async def slack(self, request: Request) -> Reply:
        """Send a Slack message."""
        asked = request.arguments
        target = self.targets.by_name(asked.get("webhook", "slack"))
        payload: dict[str, Any] = {"text": asked["text"]}
        if "blocks" in asked:
            payload["blocks"] = asked["blocks"]
        return await self._send(target, payload, request)

    async def _send(self, target: Target, payload: dict[str, Any], request: Request) -> Reply:
        body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        if len(body) > MAX_BODY:
            raise ToolFailed(message=f"the message is larger than {MAX_BODY} bytes")
        headers = {"Content-Type": "application/json; charset=utf-8"}
        key = _key(request)
        if key is None:
            return _told(target, None, await self.poster.post(target.url, body, headers))
        headers["Idempotency-Key"] = key
        async with self.turns.of(key):
            return await self._once(target, key, body, headers)

    async def _once(self, target: Target, key: str, body: bytes, headers: dict[str, str]) -> Reply:
        digest = hashlib.sha256(target.url.encode() + b"\n" + body).hexdigest()
        try:
            earlier = await asyncio.to_thread(self.outbox.claim, key, digest)
        except sqlite3.Error:
            raise ToolFailed(message="nothing was sent: the outbox file cannot be used") from None
        if earlier is not None:
            return _remembered(target, key, digest, earlier)
        posted = await self.poster.post(target.url, body, headers)
        # from here on the message may be out: what is known is recorded even when cancelled
        # a failure to record leaves the intent: later calls say unknown, the safe side
        with suppress(sqlite3.Error):
            await asyncio.shield(asyncio.to_thread(self._settle, key, posted))
        return _told(target, key, posted)

    def _settle(self, key: str, posted: Posted) -> None:
        if isinstance(posted, Answered):
            state = State.DELIVERED if _good(posted.status) else State.REFUSED
            self.outbox.settle(key, state, posted.status)
        elif isinstance(posted, NotSent):
            self.outbox.release(key)


def _key(request: Request) -> str | None:
    given = request.arguments.get("idempotency_key", request.meta.get(KEY))
    if given is None:
        return None
    if not isinstance(given, str) or not 1 <= len(given) <= 255 or not _printable(given):
        raise ToolFailed(message=f"_meta['{KEY}'] must be 1 to 255 printable ASCII characters")
    return given


def _printable(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key


def _good(status: int) -> bool:
    return 200 <= status < 300


def _told(target: Target, key: str | None, posted: Posted) -> Reply:
    if isinstance(posted, Answered):
        outcome, status = ("delivered" if _good(posted.status) else "refused"), posted.status
        said, reason = posted.excerpt, f"answered {posted.status}"
    else:
        outcome = "not_sent" if isinstance(posted, NotSent) else "unknown"
        status, said, reason = None, "", posted.reason
    structured = _structured(target, key, outcome, status) | {"response": said}
    text_ = f"{outcome}: {target.label} {reason}" + (f": {said}" if said else "")
    if outcome == "delivered":
        return Reply(text=text_, structured=structured)
    raise ToolFailed(message=f"{text_}{_ADVICE[outcome]}", structured=structured)


def _remembered(target: Target, key: str, digest: str, earlier: Attempt) -> Reply:
    if earlier.digest != digest:
        raise ToolFailed(message="this idempotency key was used for another message or target")
    outcome = "unknown" if earlier.state is State.INTENDED else earlier.state.value
    structured = _structured(target, key, outcome, earlier.status) | {"duplicate": True}
    text_ = f"{outcome} before under this key: nothing was sent now"
    if outcome == "delivered":
        return Reply(text=text_, structured=structured)
    raise ToolFailed(message=f"{text_}{_ADVICE[outcome]}", structured=structured)


_ADVICE = {
    "refused": "; to try again use another idempotency key",
    "not_sent": "; it is safe to try again",
    "unknown": "; ask the receiver whether it arrived before sending under another key",
}


def _structured(
    target: Target, key: str | None, outcome: str, status: int | None
) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "status": status,
        "target": target.label,
        "duplicate": False,
        "idempotency_key": key,
        "response": "",
    }
