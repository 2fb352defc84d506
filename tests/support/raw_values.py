"""Arbitrary JSON for raw peers: what hypothesis makes arguments and results of."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.support.raw_json import PLAIN, RESERVED, Number, Style
from tests.support.raw_upstreams import WHOLE, Framing

MAX_DEPTH = 64
"""Arrays and objects in one another that the gateway lets through."""

_ODD_TEXT = (
    "", "\x00", "\x1f\x7f\x80\x9f", "\\", '"', "\\u0041", "a\r\nb\n\n", "data: x\n\n", ": alive",
    "\u2028\u2029", "\ufeff", "\ufffe\uffff", "𝒳🎉🏳️‍🌈", "e\u0301 é", "\u202eabc", "日本語",
    '"resultType"', '"_meta":{', RESERVED, "io.modelcontextprotocol", "NaN", "=?base64?eA==?=",
    "__proto__",
)  # fmt: skip
_ODD_NUMBERS = (
    "-0", "0", "-0.0", "0.10", "1E+2", "1e2", "1.0", "-1.50e-3", "1e-400", "5e-324", "4.9e-324",
    "1.7976931348623157e308", "2.2250738585072011e-308", "0.1000000000000000055511151231257827",
    "9007199254740993", "9007199254740993.0", "18446744073709551615", "18446744073709551616",
    "-9223372036854775809", "123456789012345678901234567890", "1" + "0" * 4095, "-" + "9" * 4096,
    "0." + "3" * 5000, "100000000000000000000000.5e-22",
)  # fmt: skip
_WIDE: tuple[Any, ...] = (
    list(range(300)),
    {f"key {number}": number for number in range(100)},
    [{}, []] * 50,
    "x" * 70_000,
    "é🎉" * 20_000,
    "9" * 5000,
)

texts = st.one_of(st.text(max_size=12), st.sampled_from(_ODD_TEXT))
numbers = st.one_of(
    st.integers(),
    st.integers(min_value=-(2**200), max_value=2**200),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([Number(text) for text in _ODD_NUMBERS]),
)
leaves: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), numbers, texts, st.sampled_from([[], {}])
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)


def tower(height: int, top: Any = None, *, lists: bool = False) -> Any:
    """Return `top` under `height` containers: objects and arrays by turns, or arrays only."""
    value = top
    for level in range(height):
        value = [value] if lists or level % 2 else {"in": value, "beside": level}
    return value


towers = st.builds(
    tower, st.integers(min_value=20, max_value=MAX_DEPTH - 4), leaves, lists=st.booleans()
)
anything = st.one_of(values, values, values, towers, st.sampled_from(_WIDE))

# the keys that belong to a hop are the one thing that may differ
_own_keys = texts.filter(lambda key: not key.startswith(RESERVED))
objects = st.dictionaries(texts, anything, max_size=4)
metas = st.dictionaries(
    _own_keys.filter(lambda key: key not in {"progressToken", "traceparent", "tracestate"}),
    values,
    max_size=3,
)
hop_metas = st.builds(
    lambda kept, reserved: {**kept, **reserved},
    metas,
    st.sampled_from([{}, {}, {RESERVED + "serverInfo": {"name": "raw"}, RESERVED + "x": None}]),
)
annotations = st.fixed_dictionaries(
    {},
    optional={
        "audience": st.sampled_from([["user"], ["user", "assistant"], []]),
        "priority": st.sampled_from([0, 1, Number("0.50")]),
        "lastModified": st.just("2026-07-28T00:00:00Z"),
        "x-unknown": values,
    },
)


def _block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    extra = st.fixed_dictionaries(
        {}, optional={"annotations": annotations, "_meta": hop_metas, "x-unknown": anything}
    )
    own = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.builds(lambda own, extra: {**own, **extra}, own, extra)


_base64 = st.sampled_from(["", "AAECAw==", "iVBORw0KGgo="])
_uris = st.sampled_from(["file:///a%20b", "https://example.test/ü?x=1#y", "urn:x:y"])
blocks = st.one_of(
    _block("text", text=texts),
    _block("image", data=_base64, mimeType=st.just("image/png")),
    _block("audio", data=_base64, mimeType=st.just("audio/wav")),
    _block("resource_link", uri=_uris, name=texts, size=numbers, icons=values),
    _block("resource", resource=_block("", uri=_uris, text=texts, mimeType=st.none())),
    _block("resource", resource=_block("", uri=_uris, blob=_base64)),
    _block("of tomorrow", payload=anything),
)
formal_results = st.builds(
    lambda content, rest: {"content": content, **rest},
    st.lists(blocks, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "structuredContent": anything,
            "isError": st.booleans(),
            "_meta": hop_metas,
            "x-unknown": anything,
        },
    ),
)
loose_results = st.dictionaries(
    _own_keys.filter(lambda key: key not in {"_meta", "resultType"}), anything, max_size=4
)
results = st.one_of(formal_results, formal_results, formal_results, loose_results)
styles = st.builds(Style, st.sampled_from(["", "", " ", "\r\n\t", "\n  "]), st.booleans())
framings = st.builds(
    Framing, st.booleans(), st.sampled_from([1, 1, 3, 7]), st.sampled_from(["\n", "\r\n"])
)
tokens = st.one_of(st.none(), st.integers(), st.text(min_size=1, max_size=8))


@dataclass(frozen=True, slots=True)
class Case:
    """One call: what goes up, what comes back, and how both are spelled."""

    arguments: dict[str, Any]
    result: dict[str, Any]
    meta: dict[str, Any]
    token: str | int | None = None
    note: Any = None
    style: Style = PLAIN
    framing: Framing = WHOLE
    tool: str = "plain"


cases = st.builds(
    Case,
    arguments=objects,
    result=results,
    meta=metas,
    token=tokens,
    note=values,
    style=styles,
    framing=framings,
    tool=st.sampled_from(["plain", "shaped", "any.shape"]),
)
