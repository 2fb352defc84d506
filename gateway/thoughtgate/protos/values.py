"""What is wrong with a JSON value that is to become a protobuf message, and where.

Never repeats the value itself: it may be a secret.
"""

from thoughtgate.core.errors import InvalidArguments
from thoughtgate.core.json import JsonValue
from thoughtgate.core.problems import Problem

Step = str | int
"""One step into a value: a member's name or an item's index."""

MAX_FRAMES = 100
"""How deep messages may nest on the wire; most readers of protobuf refuse more."""

_TYPES = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array"}


class ProtoValueError(InvalidArguments):
    """A value that the message cannot hold; `pointer` is an RFC 6901 JSON pointer into it."""

    def __init__(self, *, pointer: str, expected: str, got: JsonValue) -> None:
        problem = Problem(
            pointer=pointer,
            keyword="protobuf",
            expected=expected,
            got_type=type_of(got),
            got_preview="",
        )
        super().__init__(
            message=f"the value at {pointer or 'the root'} must be {expected}",
            problems=(problem,),
            data={"problems": [problem.as_json()]},
        )
        self.pointer = pointer


class Misfit(Exception):
    """A misfit on its way up: each level that it passes adds its step to `steps`."""

    def __init__(self, *, wanted: str, got: JsonValue = None, at: Step | None = None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.got = got
        self.steps: list[Step] = [] if at is None else [at]

    def told(self) -> ProtoValueError:
        """Return the error for callers."""
        return ProtoValueError(
            pointer=pointer(self.steps[::-1]), expected=self.wanted, got=self.got
        )


def pointer(steps: list[Step]) -> str:
    """Return the JSON pointer of `steps`, outermost first."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def type_of(value: JsonValue) -> str:
    """Return the JSON type's name of a value."""
    if value is None:
        return "null"
    return _TYPES.get(type(value), "object")
