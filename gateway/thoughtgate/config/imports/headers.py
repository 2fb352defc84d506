"""The headers of a server, in each way that files give them.

Never sends any; what could not be sent is a problem here already.
"""

import re
from collections.abc import Mapping

from thoughtgate.config.imports.fields import Fields

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BEARER = "bearer_token_env_var"


def read_headers(fields: Fields) -> Mapping[str, str]:
    """Return all headers; two of one name are a problem."""
    found: dict[str, str] = {}
    for key in ("headers", "http_headers"):
        for name, value in fields.pairs(key).items():
            _put(fields, found, (key, name), value)
    named = fields.table.get("env_http_headers")
    for name, variable in named.items() if isinstance(named, Mapping) else ():
        if isinstance(variable, str):
            value = _variable(fields, variable, "env_http_headers", name)
            _put(fields, found, ("env_http_headers", name), value)
        else:
            fields.problem("must be the name of a variable", "env_http_headers", name)
    token = fields.text(_BEARER)
    if token:
        value = _variable(fields, token, _BEARER)
        _put(fields, found, (_BEARER,), f"Bearer {value}", "Authorization")
    return found


def _variable(fields: Fields, name: str, *steps: str) -> str:
    return fields.found(lambda: fields.fill.variable(name), *steps)


def _put(
    fields: Fields, found: dict[str, str], steps: tuple[str, ...], value: str, name: str = ""
) -> None:
    name = name or steps[-1]
    if _NAME.fullmatch(name) is None:
        fields.problem("not a name that a header can have", *steps)
    elif any(ord(char) < 32 and char != "\t" for char in value):
        fields.problem("holds a line end or another control character", *steps)
    elif name.lower() in map(str.lower, found):
        fields.problem(f"a second header {name}; keep one of them", *steps)
    else:
        found[name] = value
