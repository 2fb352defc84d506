"""What protovalidate's rules ask of one value: keywords of a schema, and what no keyword can say.

Never runs CEL: such a rule is told in words, and the server checks it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from thoughtgate.protos.kinds import Schema
from thoughtgate.protos.reading import shortest


class Demand(NamedTuple):
    """A test of a value as protobuf holds it, and what is wanted in words."""

    holds: Callable[[Any], bool]
    wanted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of one value.

    `demands` are what no keyword says, `notes` what we do not check; `zero` tells whether the
    value of a field that is not there would do.
    """

    keywords: Schema = field(default_factory=dict)
    demands: tuple[Demand, ...] = ()
    notes: tuple[str, ...] = ()
    zero: bool = True


_BOUNDS: Final = (
    ("gt", "exclusiveMinimum", "more than", lambda value, limit: value > limit),
    ("gte", "minimum", "at least", lambda value, limit: value >= limit),
    ("lt", "exclusiveMaximum", "less than", lambda value, limit: value < limit),
    ("lte", "maximum", "at most", lambda value, limit: value <= limit),
)

_NON_FINITE: Final = {
    (False, False): None,
    (True, False): "^Infinity$",
    (False, True): "^-Infinity$",
}

_FORMATS: Final = {
    "email": "email",
    "hostname": "hostname",
    "ipv4": "ipv4",
    "ipv6": "ipv6",
    "uri": "uri",
    "uri_ref": "uri-reference",
    "uuid": "uuid",
}

_PATTERNS: Final = {
    "uuid": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    "tuuid": "^[0-9a-fA-F]{32}$",
    "ulid": "^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$",
}

_BYTE_LENGTHS: Final = ("len_bytes", "min_bytes", "max_bytes")

_SPECIAL_SYNTAX: Final = re.compile(r"\\[ACEGPQZpz]|\(\?[^:]|\[\[:")
"""What RE2 and the expressions of JSON Schema read differently, or not both."""


def of_number(rules: Any, *, quoted: bool, real: bool) -> Asked:
    """Return what rules of a number ask; `quoted` numbers are digits in quotes in JSON."""
    single = rules.DESCRIPTOR.name == "FloatRules"
    limits = [
        (one, shortest(limit) if single else limit)
        for one in _BOUNDS
        if rules.HasField(one[0])
        for limit in (getattr(rules, one[0]),)
    ]
    inside = _is_range(rules)
    demands = [_limit(one, limit) for one, limit in limits]
    if not inside:
        demands = [_outside(demands)]
    keywords: Schema = {one[1]: limit for one, limit in limits} if inside else {}
    picked, tests = _picked(rules, spell=_spelling(quoted=quoted, single=single))
    demands += tests
    if real and (limits or rules.finite):
        keywords |= _without_infinities(limits, inside=inside, finite=rules.finite)
    unsaid = demands if quoted or not inside else ()
    return Asked(
        keywords=keywords | picked,
        demands=tuple(unsaid),
        notes=tuple(demand.wanted for demand in unsaid if not inside),
        zero=all(demand.holds(0) for demand in demands),
    )


def _spelling(*, quoted: bool, single: bool) -> Callable[[Any], list[Any]]:
    if quoted:
        return lambda value: [str(value), value]
    return (lambda value: [shortest(value)]) if single else (lambda value: [value])


def _is_range(rules: Any) -> bool:
    """Tell whether the limits enclose the values; the other way round they shut them out."""
    low = next((getattr(rules, name) for name in ("gt", "gte") if rules.HasField(name)), None)
    high = next((getattr(rules, name) for name in ("lt", "lte") if rules.HasField(name)), None)
    return (
        low is None or high is None or bool(low < high or (low == high and rules.HasField("gte")))
    )


def _limit(bound: tuple[str, str, str, Callable[[Any, Any], bool]], limit: Any) -> Demand:
    _, _, words, holds = bound
    return Demand(lambda value: holds(value, limit), f"{words} {limit}")


def _outside(demands: list[Demand]) -> Demand:
    return Demand(
        lambda value: any(demand.holds(value) for demand in demands),
        " or ".join(demand.wanted for demand in demands),
    )


def _without_infinities(limits: list[Any], *, inside: bool, finite: bool) -> Schema:
    names = {one[0] for one, _ in limits}
    low, high = bool(names & {"gt", "gte"}), bool(names & {"lt", "lte"})
    if finite or (low and high and inside):
        return {"type": "number"}
    pattern = _NON_FINITE.get((low, high), "^-?Infinity$")
    return {"pattern": pattern} if pattern else {}


def _picked(rules: Any, spell: Callable[[Any], list[Any]]) -> tuple[Schema, list[Demand]]:
    """Return what `const`, `in` and `not_in` say."""
    keywords: Schema = {}
    demands = []
    allowed = [rules.const] if rules.HasField("const") else list(getattr(rules, "in", ()))
    if allowed:
        keywords["enum"] = [one for value in allowed for one in spell(value)]
        words = "one of " + ", ".join(map(str, allowed))
        demands.append(Demand(lambda value: value in allowed, words))
    refused = list(getattr(rules, "not_in", ()))
    if refused:
        keywords["not"] = {"enum": [one for value in refused for one in spell(value)]}
        words = "none of " + ", ".join(map(str, refused))
        demands.append(Demand(lambda value: value not in refused, words))
    return keywords, demands


def of_text(rules: Any) -> Asked:
    """Return what rules of a string ask."""
    keywords, demands = _picked(rules, spell=lambda value: [value])
    for name, keys in (
        ("min_len", ("minLength",)),
        ("max_len", ("maxLength",)),
        ("len", ("minLength", "maxLength")),
    ):
        if rules.HasField(name):
            keywords |= dict.fromkeys(keys, getattr(rules, name))
    patterns, notes = _patterns(rules)
    kind = rules.WhichOneof("well_known")
    if kind in _FORMATS:
        keywords["format"] = _FORMATS[kind]
    elif kind is not None:
        notes.append(f"Must be of the kind {kind}.")
    if kind in _PATTERNS:
        patterns.append({"pattern": _PATTERNS[kind]})
    if len(patterns) == 1 and "pattern" in patterns[0]:
        keywords |= patterns[0]
    elif patterns:
        keywords["allOf"] = patterns
    shortest = keywords.get("minLength", 0)
    return Asked(
        keywords=keywords,
        demands=tuple(_sizes(rules, _BYTE_LENGTHS, lambda value: len(value.encode()))),
        notes=tuple(notes),
        zero=not shortest and all(demand.holds("") for demand in demands),
    )


def _patterns(rules: Any) -> tuple[list[Schema], list[str]]:
    patterns: list[Schema] = []
    notes = []
    if rules.HasField("pattern"):
        if _SPECIAL_SYNTAX.search(rules.pattern):
            notes.append(f"Must match {rules.pattern[:200]}.")
        else:
            patterns.append({"pattern": rules.pattern})
    if rules.HasField("prefix"):
        patterns.append({"pattern": "^" + _escaped(rules.prefix)})
    if rules.HasField("suffix"):
        patterns.append({"pattern": _escaped(rules.suffix) + "$"})
    if rules.HasField("contains"):
        patterns.append({"pattern": _escaped(rules.contains)})
    if rules.HasField("not_contains"):
        patterns.append({"not": {"type": "string", "pattern": _escaped(rules.not_contains)}})
    return patterns, notes


def _escaped(text: str) -> str:
    return re.sub(r"([\\^$.*+?()\[\]{}|])", r"\\\1", text)


_LENGTHS: Final = (
    ("", lambda size, limit: size == limit),
    ("at least ", lambda size, limit: size >= limit),
    ("at most ", lambda size, limit: size <= limit),
)


def _sizes(rules: Any, names: tuple[str, ...], size: Callable[[Any], int]) -> list[Demand]:
    """Return the demands of the rules that count bytes: exactly, at least, at most."""
    return [
        _size(holds, getattr(rules, name), words, size)
        for name, (words, holds) in zip(names, _LENGTHS, strict=True)
        if rules.HasField(name)
    ]


def _size(
    holds: Callable[[int, int], bool], limit: int, words: str, size: Callable[[Any], int]
) -> Demand:
    return Demand(lambda value: holds(size(value), limit), f"{words}{limit} bytes long")


_BYTES_KINDS: Final = {"ip": (4, 16), "ipv4": (4,), "ipv6": (16,), "uuid": (16,)}


def of_bytes(rules: Any) -> Asked:
    """Return what rules of bytes ask, all of it in demands: a schema sees only base64."""
    demands = _sizes(rules, ("len", "min_len", "max_len"), len)
    _, picked = _picked(rules, spell=lambda value: [value])
    if picked:
        demands += [Demand(one.holds, "bytes that the field allows") for one in picked]
    for name, test in (
        ("prefix", bytes.startswith),
        ("suffix", bytes.endswith),
        ("contains", bytes.__contains__),
    ):
        if rules.HasField(name):
            demands.append(_part(test, getattr(rules, name), name))
    kind = rules.WhichOneof("well_known")
    if kind is not None:
        demands.append(
            Demand(lambda value: len(value) in _BYTES_KINDS[kind], f"the bytes of one {kind}")
        )
    notes = [f"Must be {demand.wanted}." for demand in demands]
    if rules.HasField("pattern"):
        notes.append(f"Must match {rules.pattern[:200]}.")
    return Asked(
        demands=tuple(demands),
        notes=tuple(notes),
        zero=all(demand.holds(b"") for demand in demands),
    )


def _part(test: Callable[[bytes, bytes], bool], part: bytes, name: str) -> Demand:
    return Demand(lambda value: test(value, part), f"bytes with the {name} that the field asks for")


def of_moment(rules: Any, key: Callable[[Any], int]) -> Asked:
    """Return what rules of a Duration or a Timestamp ask; those about now are only told."""
    demands = [
        _moment(key, holds, words, getattr(rules, name))
        for name, _, words, holds in _BOUNDS
        if rules.HasField(name)
    ]
    if len(demands) == 2 and not _encloses(rules, key):
        demands = [_outside(demands)]
    if rules.HasField("const"):
        exact = key(rules.const)
        demands.append(Demand(lambda value: key(value) == exact, "the one that the field allows"))
    for name, wanted in (("in", True), ("not_in", False)):
        if listed := frozenset(map(key, getattr(rules, name, ()))):
            demands.append(_listed(key, listed, wanted=wanted))
    notes = [f"Must be {demand.wanted}." for demand in demands]
    for name, words in (
        ("lt_now", "in the past"),
        ("gt_now", "in the future"),
        ("within", "near the present"),
    ):
        if name in rules.DESCRIPTOR.fields_by_name and rules.HasField(name):
            notes.append(f"Must be {words}.")
    return Asked(demands=tuple(demands), notes=tuple(notes))


def _encloses(rules: Any, key: Callable[[Any], int]) -> bool:
    low = rules.gt if rules.HasField("gt") else rules.gte
    high = rules.lt if rules.HasField("lt") else rules.lte
    return key(low) < key(high) or (key(low) == key(high) and bool(rules.HasField("gte")))


def _moment(
    key: Callable[[Any], int], holds: Callable[[Any, Any], bool], words: str, said: Any
) -> Demand:
    limit = key(said)
    return Demand(lambda value: holds(key(value), limit), f"{words} {said.ToJsonString()}")


def _listed(key: Callable[[Any], int], listed: frozenset[int], *, wanted: bool) -> Demand:
    words = "one that the field allows" if wanted else "none that the field forbids"
    return Demand(lambda value: (key(value) in listed) is wanted, words)
