"""TOML as a value, each fault with its line and column. Never changes a text."""

import re
import tomllib
from typing import Any

from thoughtgate.config.texts import BOM, Unreadable, fault

_PLACE = re.compile(r"line (\d+), column (\d+)")


def read(text: str) -> dict[str, Any]:
    """Return what the text says.

    Raises:
        Unreadable: Not TOML.
    """
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except RecursionError:
        raise fault(text, 0, "not valid TOML: nested too deeply") from None
    except ValueError as error:  # an integer of too many digits is a ValueError
        why = f"not valid TOML: {str(error).partition(' (at ')[0]}"
        place = _PLACE.search(str(error))
        if place is None:
            raise fault(text, len(text), why) from None
        raise Unreadable(why, int(place[1]), int(place[2])) from None
