"""Strict JSON: what is read, exactly, and what is refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonValue
from thoughtgate.wire.strict import MAX_DEPTH, MAX_DIGITS, dumps, parse

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def same(one: JsonValue, other: JsonValue) -> bool:
    """Equal as JSON: Python's own `==` takes 1, 1.0 and True for one another."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        pairs = zip(one.items(), other.items(), strict=False)
        return len(one) == len(other) and all(a == b and same(x, y) for (a, x), (b, y) in pairs)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(JSON)
def test_what_is_written_is_what_is_read(value: JsonValue) -> None:
    for text in (dumps(value), json.dumps(value).encode(), json.dumps(value, indent=1).encode()):
        assert same(parse(text, max_depth=99), value)
        assert same(parse(text + b" " * 5000, max_depth=99), value)


@given(
    st.dictionaries(st.text(alphabet=':\\"{[a\u00e9'), JSON, min_size=1), st.sampled_from([0, 5000])
)
def test_a_member_written_once_more_is_found(value: dict[str, JsonValue], spaces: int) -> None:
    again = json.dumps(next(iter(value)))
    for text in (dumps(value), json.dumps(value).encode()):
        twice = text[:-1] + b",%b:[]}" % again.encode()
        with pytest.raises(Malformed, match="duplicate key"):
            parse(twice + b" " * spaces, max_depth=99)


@given(st.binary(max_size=40) | st.text(alphabet='{}[]":,0123456789eE+-.\\u \n', max_size=30))
def test_what_the_standard_library_refuses_is_refused(data: bytes | str) -> None:
    raw = data if isinstance(data, bytes) else data.encode()
    try:
        value = json.loads(raw.decode())
    except (ValueError, RecursionError):
        with pytest.raises(Malformed):
            parse(raw)
    else:
        try:
            assert same(parse(raw), value)
        except Malformed:
            assert not_quite_json(raw)


def not_quite_json(raw: bytes) -> bool:
    """Tell whether the standard library reads more than JSON here."""
    duplicates: list[bool] = []

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        duplicates.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    value = json.loads(raw.decode(), object_pairs_hook=note)
    strange = "NaN" in raw.decode() or "Infinity" in raw.decode()
    surrogate = any(0xD800 <= ord(char) < 0xE000 for char in json.loads(f'"{_texts(value)}"'))
    return any(duplicates) or strange or surrogate or not _finite(value)


def _texts(value: object) -> str:
    return json.dumps(json.dumps(value, ensure_ascii=False))[1:-1]


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(map(_finite, value))
    return all(map(_finite, value.values())) if isinstance(value, dict) else True


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":2}',
        b'[{"x":[{"k":{},"k":{}}]}]',
        b'{"\\"":1,"\\"":2}',
        b'{"a:":1,"b":{"a":1,"a":1}}',
        b'{"":0,"":0}',
        b'{"a":1,"a":"\\u003a"}',
        b'{"a":":","a":"\\u003A"}',
        b'{"\\\\":1,"\\\\":2}',
    ],
)
@pytest.mark.parametrize("spaces", [0, 5000])
def test_a_key_that_comes_twice_is_refused_and_named(text: bytes, spaces: int) -> None:
    with pytest.raises(Malformed, match="duplicate key"):
        parse(text + b" " * spaces)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":{"a":1},"b":{"a":1}}',
        b'{"a":"\\"a\\":1","b\\\\":":","c":"{\\\\\\"k\\":1"}',
        b'[{"a":1},{"a":1}]',
        b'{"x":"\\\\","y":":"}',
        b'{"A":1,"a":1}',
        b'{"a":"\\u003a","b":":"}',
    ],
)
@pytest.mark.parametrize("spaces", [0, 5000])
def test_keys_that_only_look_alike_are_read(text: bytes, spaces: int) -> None:
    assert parse(text + b" " * spaces) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b"-1e999", b"[1e309]",
        b'"\\ud800"', b'"\\udc00x"', b'"\\udc00\\ud800"', b'{"\\ud800":1}', b'"\xed\xa0\x80"',
        b'"\xff"', b'{"\xff":1}', b"\xef\xbb\xbf1", b"", b" ", b"01", b"1.", b"+1", b"'a'",
        b"[1,]", b'{"a":1,}', b"1 1", b'"\x01"', b"nul", b'{"a"}', b"\x00",
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(Malformed):
        parse(text)


@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
def test_depth_is_counted_exactly_and_never_by_recursion(left: bytes, right: bytes) -> None:
    levels = MAX_DEPTH if left != b'[{"a":' else MAX_DEPTH // 2
    assert parse(left * levels + b"1" + right * levels)
    for too_many in (levels + 1, 300, 100_000):
        with pytest.raises(Malformed, match="deeper"):
            parse(left * too_many + b"1" + right * too_many)


def test_the_depth_limit_is_the_caller_s() -> None:
    assert parse(b"[[]]", max_depth=2) == [[]]
    with pytest.raises(Malformed):
        parse(b"[[[]]]", max_depth=2)


def test_brackets_in_texts_nest_nothing() -> None:
    assert parse(b'["' + b"[{" * 500 + b'"]')


def test_integers_are_exact_up_to_the_limit() -> None:
    longest = b"9" * MAX_DIGITS
    for text in (longest, b"-" + longest, b"[" + longest + b"]", b'{"a":' + longest + b"}"):
        assert dumps(parse(text)) == text
    for text in (longest + b"9", b"-9" + longest, b'["x",' + longest + b"9]"):
        with pytest.raises(Malformed, match="digits"):
            parse(text)


@pytest.mark.parametrize("at", [0, 1, 2046, 2047, 2048, 2049, 4095, 4096, 10_001])
def test_a_long_integer_is_found_wherever_it_stands(at: int) -> None:
    with pytest.raises(Malformed, match="digits"):
        parse(b"[" + b" " * at + b"9" * (MAX_DIGITS + 1) + b"]")


def test_long_digits_that_are_no_integer_are_read() -> None:
    digits = b"1" * 5000
    assert parse(b'["' + digits + b'"]') == [digits.decode()]
    assert parse(b"0." + digits) == float(b"0." + digits)


def test_a_message_never_shows_a_value() -> None:
    for text in (b'{"password":"hunter2"', b'{"password":"hunter2","x":1e999}'):
        with pytest.raises(Malformed) as caught:
            parse(text)
        assert "hunter2" not in caught.value.message
