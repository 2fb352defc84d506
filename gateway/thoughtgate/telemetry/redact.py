"""What may not leave the process in a span: secrets, by the name they go by or by their shape.

Never decides what is recorded; it is the last look at each text before it is exported. It is a net
under the rule that contents are recorded only when capture is on, not a licence to record them.
"""

import json
import re
from functools import lru_cache
from itertools import pairwise

from thoughtgate.core.json import JsonValue

HIDDEN = "[redacted]"
"""What stands in the place of a secret."""

_PARSE_LIMIT = 256 * 1024

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    {"authorization", "password", "passwd", "passphrase", "secret", "secrets", "token", "cookie",
     "credential", "credentials", "apikey", "authtoken", "accesstoken"}
)  # fmt: skip
_SECRET_PAIRS = frozenset({("api", "key"), ("private", "key"), ("access", "key"), ("auth", "key")})

_NAME = r"[\w.-]{0,40}(?:authorization|passw(?:or)?d|passphrase|secret|token|cookie|api[_ -]?key)"
_BARE = "AKIA"
"""How the one shape begins that is made of letters and digits alone."""

# searched in lower-case text: six times as fast as a pattern that ignores case
_HINT = re.compile(
    r"auth|passw|passphrase|secret|token|cookie|credential|key|bearer|://|sk-|gh[opsu]_|xox|akia|eyj"
)
# JSON that was cut, or JSON within a JSON string: quotes may carry backslashes
_MEMBER_NAME = re.compile(r'"([^"\\]{0,80})\\{0,8}"\s{0,8}:\s{0,8}')
_MEMBER_VALUE = re.compile(
    r"""\\{1,8}"(?:[^"\\]|\\[^"\\])*(?:\\{1,8}")?|"(?:[^"\\]|\\.)*"?|[^\s,}\]]*""", re.DOTALL
)
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"\b(bearer)\s+(?=\S{0,200}[0-9._-])[A-Za-z0-9._~+/=-]{6,}", re.I),
        rf"\1 {HIDDEN}",
    ),
    (re.compile(r"\b(authorization\s*[=:]\s*basic)\s+\S+", re.I), rf"\1 {HIDDEN}"),
    (
        re.compile(
            rf"(\b{_NAME}\b)(\s*[=:]\s*)(?!\[redacted\]|(?:bearer|basic)\s)[^\s,;&\"']+", re.I
        ),
        rf"\1\2{HIDDEN}",
    ),
    (re.compile(r"(://)[^/\s@\"]{1,256}@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), HIDDEN),
    (re.compile(r"\bgh[opsu]_[A-Za-z0-9]{20,}"), HIDDEN),
    (re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{8,}"), HIDDEN),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), HIDDEN),
)


@lru_cache(maxsize=2048)
def is_secret_name(name: str) -> bool:
    """Tell whether a value by this name must be hidden: `x-api-key` yes, `input_tokens` no."""
    words = [word.lower() for word in _WORDS.findall(name[:200])]
    if any(word in _SECRET_WORDS for word in words):
        return True
    return any(pair in _SECRET_PAIRS for pair in pairwise(words))


def redact(text: str) -> str:
    """Return `text` with what looks like a secret hidden; JSON is searched by its member names."""
    if text.isalnum() and _BARE not in text:  # an id: all other shapes have a mark or a blank
        return text
    if _HINT.search(text.lower()) is None:
        return text
    if text[:1] in {"{", "["} and len(text) <= _PARSE_LIMIT:
        try:
            value = json.loads(text)
            clean = _walk(value)
            return text if clean == value else json.dumps(clean, ensure_ascii=False)
        except (ValueError, RecursionError):  # cut, too deep or not JSON after all: by shape
            pass
    return _by_shape(text)


def _walk(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {
            name: HIDDEN if is_secret_name(name) and member is not None else _walk(member)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_walk(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def _by_shape(text: str) -> str:
    text = _without_secret_members(text)
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    return text


def _without_secret_members(text: str) -> str:
    kept: list[str] = []
    end = 0
    for name in _MEMBER_NAME.finditer(text):
        if name.start() >= end and is_secret_name(name[1]):
            kept += [text[end : name.end()], f'"{HIDDEN}"']
            value = _MEMBER_VALUE.match(text, name.end())
            end = value.end() if value else name.end()
    return "".join([*kept, text[end:]])
