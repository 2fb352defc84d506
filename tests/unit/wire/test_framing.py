"""Lines and events: the same messages, however the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.core.errors import Malformed
from thoughtgate.wire.lines import LineSplitter, SkippingSplitter, TooLong
from thoughtgate.wire.sse import Event, EventParser, encode_event


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(ends)]


PLACES = st.lists(st.integers(0, 200), max_size=30)


@given(PLACES)
def test_lines_do_not_depend_on_chunks(places: list[int]) -> None:
    splitter = LineSplitter(cap=100)
    data = b'{"a":1}\r\n\n  \n{"b":2}\n' + b"x" * 99 + b"\nrest"
    lines = [line for chunk in cut(data, places) for line in splitter.feed(chunk)]
    assert lines == [b'{"a":1}', b'{"b":2}', b"x" * 99]
    assert splitter.feed(b"\n") == [b"rest"]


@given(PLACES)
def test_the_cap_of_a_line_does_not_depend_on_chunks(places: list[int]) -> None:
    splitter = LineSplitter(cap=100)
    chunks = cut(b"ok\n" + b"x" * 101 + b"\n", places)
    with pytest.raises(Malformed):
        list(map(splitter.feed, chunks))


def test_a_line_may_be_as_long_as_its_cap() -> None:
    splitter = LineSplitter(cap=20_000_000)
    long = b"x" * 20_000_000
    lines: list[bytes] = []
    for start in range(0, len(long), 65536):
        lines += splitter.feed(long[start : start + 65536])
    assert (lines + splitter.feed(b"\n")) == [long]


@given(PLACES)
def test_a_line_beyond_the_cap_may_be_read_past(places: list[int]) -> None:
    splitter = SkippingSplitter(cap=100)
    data = b"ok\n" + b"x" * 100 + b"\n" + b"y" * 101 + b"\r\n \n" + b"z" * 5000 + b"\nrest"
    lines = [line for chunk in cut(data, [*places, 400, 4000]) for line in splitter.feed(chunk)]
    gone = [TooLong(head=b"y" * 100), TooLong(head=b"z" * 100)]
    assert lines == [b"ok", b"x" * 100, *gone]
    assert splitter.feed(b"\n") == [b"rest"]


STREAM = (
    b"\xef\xbb\xbf: hello\n\n"
    b"id: 1\ndata:\n\n"
    b'event: message\r\ndata: {"a":\r\ndata:1}\r\n\r\n'
    b"retry: 50\rid: x\rdata: b\r\r"
    b"unknown: 1\nretry: -5\nid: n\x00l\n\n"
    b"event: other\ndata: c\n\ndata: unfinished"
)
EVENTS = [
    Event(data=b"", id="1"),
    Event(data=b'{"a":\n1}'),
    Event(data=b"b", id="x", retry=50),
    Event(data=b"c", event="other"),
]


@given(PLACES)
def test_events_do_not_depend_on_chunks(places: list[int]) -> None:
    parser = EventParser(cap=100)
    assert [event for chunk in cut(STREAM, places) for event in parser.feed(chunk)] == EVENTS


def test_events_byte_by_byte() -> None:
    parser = EventParser(cap=100)
    assert [event for byte in STREAM for event in parser.feed(bytes([byte]))] == EVENTS


@given(PLACES)
def test_the_cap_of_an_event_does_not_depend_on_chunks(places: list[int]) -> None:
    parser = EventParser(cap=100)
    chunks = cut(b"data: x\n\n" + b"data: yyyy\n" * 12 + b"\n", places)
    with pytest.raises(Malformed):
        list(map(parser.feed, chunks))


def test_comments_for_ever_are_no_event_and_do_not_fill_the_cap() -> None:
    parser = EventParser(cap=100)
    for _ in range(100):
        assert parser.feed(b": keepalive\n\n") == []
    for _ in range(100):
        assert parser.feed(b": keepalive\n") == []


def test_a_comment_of_any_length_takes_no_memory() -> None:
    parser = EventParser(cap=100)
    assert parser.feed(b"data: 1\n:") == []
    for _ in range(40):
        assert parser.feed(b": x" * 50) == []
    [event] = parser.feed(b"\ndata: 2\n\n")
    assert event.data == b"1\n2"


def test_an_encoded_event_is_parsed_as_it_was() -> None:
    for data, id_ in ((b'{"a":1}', None), (b'{\r\n"a":\n1\r}', "7"), ("é\u2028".encode(), None)):
        (event,) = EventParser(cap=100).feed(encode_event(data, id=id_))
        assert event.id == id_
        assert event.data.split() == data.split()
