"""Files of variables, one `NAME=value` a line, as `envFile` names them.

Never fills anything in: a value is what stands there.
"""

import re

from thoughtgate.core.errors import ConfigError

_LINE = re.compile(
    r"""(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*
    (?: '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)" | (?P<plain>[^'"\s\#](?:(?!\s\#).)*|) )
    \s*(?:(?<=\s)\#.*)?""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def parse(text: str) -> dict[str, str]:
    """Return the variables; the last of a name wins.

    Raises:
        ConfigError: A line is neither a variable, a comment nor blank.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        match = _LINE.fullmatch(bare)
        if match is None:
            raise ConfigError(message=f"line {number} is not NAME=value")
        found[match["name"]] = _value(match)
    return found


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), match["double"])
    return match["single"] if match["single"] is not None else match["plain"].rstrip()
