"""A call with some fields changed, for the path, where four copies a call are made.

Never changes the call it is given.
"""

from operator import attrgetter
from typing import Any

from thoughtgate.core.calls import Call

_NAMES = tuple(Call.__dataclass_fields__)
_values = attrgetter(*_NAMES)
_SETTERS = tuple(getattr(Call, name).__set__ for name in _NAMES)


def altered(call: Call, **changes: Any) -> Call:
    """Return what `dataclasses.replace` does, in less than half of its time.

    `replace` goes through keyword arguments and `__init__`; a call has nothing to check there, so
    its slots are copied one by one.
    """
    copy = object.__new__(Call)
    for put, value in zip(_SETTERS, _values(call), strict=True):
        put(copy, value)
    for name, value in changes.items():
        object.__setattr__(copy, name, value)
    return copy
