"""A call made, or with some fields changed, for the path, where several copies a call are made.

Never changes the call it is given.
"""

from dataclasses import MISSING, fields
from typing import Any

from thoughtgate.core.calls import Call

_COUNT = len(Call.__dataclass_fields__)
_DEFAULTS = {
    field.name: field.default if field.default_factory is MISSING else field.default_factory()
    for field in fields(Call)
    if (field.default, field.default_factory) != (MISSING, MISSING)
}


def made(**given: Any) -> Call:
    """Return what `Call` does with these fields, in a fraction of its time; see `altered`."""
    whole = _DEFAULTS | given
    if len(whole) != _COUNT:
        raise AttributeError(*(whole.keys() ^ Call.__dataclass_fields__.keys()))
    call = object.__new__(Call)
    object.__setattr__(call, "__dict__", whole)
    return call


def altered(call: Call, **changes: Any) -> Call:
    """Return what `dataclasses.replace` does, in a fraction of its time.

    `replace` goes through keyword arguments and `__init__`, field by field; a call has nothing to
    check there, so all its fields are copied at once.
    """
    whole = call.__dict__ | changes
    if len(whole) > _COUNT:
        raise AttributeError(*(changes.keys() - call.__dict__.keys()))
    copy = object.__new__(Call)
    object.__setattr__(copy, "__dict__", whole)
    return copy
