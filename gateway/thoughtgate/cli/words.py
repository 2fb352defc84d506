"""Words of a command line that are more than text: JSON, and seconds.

Never guesses: what is JSON is read as strictly as a client's request.
"""

from typing import Any

import click

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonValue
from thoughtgate.wire.strict import parse


class Seconds(click.FloatRange):
    """A time in seconds; click's own range takes `nan`, which is within nothing."""

    def __init__(self) -> None:
        super().__init__(0.1, 86_400)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; a usage error when it is none within the range."""
        number: float = super().convert(value, param, ctx)
        if number != number:
            self.fail("nan is not a number of seconds.", param, ctx)
        return number


def json_or_text(word: str) -> JsonValue:
    """Return a word as JSON where it parses as JSON, else as the text that it is."""
    try:
        return parse(word.encode())
    except Malformed:
        return word
