"""Earlier turns, made fit to be sent again: one call that a server refuses poisons all that follow.

Never changes what a call said: what cannot be sent as a call is sent as text, word for word.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonObject
from thoughtgate.core.models import Message, Role, ToolUse
from thoughtgate.wire.strict import parse

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


def sendable(messages: Iterable[Message], *, objects: bool) -> tuple[Message, ...]:
    """Return the turns with every call that cannot be sent as one, and its result, as text.

    With `objects` a call's arguments must be a JSON object, as where they are not sent as text.
    A result without its call becomes text too.
    """
    called: set[str] = set()
    kept = []
    for message in messages:
        if message.role is Role.TOOL and message.use_id not in called:
            kept.append(Message(role=Role.USER, text=f"Result of a call: {message.text}"))
            continue
        good = tuple(use for use in message.uses if _fits(use, objects=objects))
        called.update(use.id for use in good)
        bad = [f"{use.name}({use.arguments})" for use in message.uses if use not in good]
        text = "\n".join([message.text, *bad] if message.text else bad)
        kept.append(replace(message, text=text, uses=good) if bad else message)
    return tuple(kept)


def arguments(use: ToolUse) -> JsonObject | None:
    """Return the arguments of a call, None unless they spell an object."""
    try:
        value = parse(use.arguments.encode("utf-8", "surrogatepass"))
    except Malformed:
        return None
    return value if isinstance(value, Mapping) else None


def _fits(use: ToolUse, *, objects: bool) -> bool:
    if _NAME.fullmatch(use.name) is None:
        return False
    return not objects or arguments(use) is not None
