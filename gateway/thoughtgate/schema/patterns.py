r"""Regular expressions of schemas, always by the Rust engine: linear where possible.

Never runs a schema's pattern through Python's `re`, which backtracks without a bound and reads
`\d`, `$` and `\p{…}` otherwise than ECMA 262.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import jsonschema_rs

from thoughtgate.core.errors import SchemaRejected

_PROGRAM_BYTES = 1 << 20
_BACKTRACKS = 5_000

LINEAR: Final = jsonschema_rs.RegexOptions(size_limit=_PROGRAM_BYTES)
"""Automata only: no look-around, no back-references, time linear in the text."""

BOUNDED: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=_BACKTRACKS, size_limit=_PROGRAM_BYTES
)
"""Look-around and back-references too; a match that needs more steps than the limit fails."""

Options = jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions


def is_linear(pattern: str) -> bool:
    """Tell whether the automaton engine can run `pattern`.

    Raises:
        SchemaRejected: Neither engine can.
    """
    return _engine(pattern)[0] is LINEAR


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether `pattern` is found anywhere in a text.

    Raises:
        SchemaRejected: The pattern cannot be run.
    """
    return _engine(pattern)[1]


@lru_cache(maxsize=4096)
def _engine(pattern: str) -> tuple[Options, Callable[[str], bool]]:
    for options in (LINEAR, BOUNDED):
        try:
            engine = jsonschema_rs.Draft202012Validator(
                {"pattern": pattern}, pattern_options=options, offline=True, validate_formats=False
            )
        except ValueError:
            continue
        return options, engine.is_valid
    raise SchemaRejected(
        rule="pattern",
        message=f"the pattern {pattern[:80]!r} is not a regular expression that can be run "
        "safely; simplify it",
    )
