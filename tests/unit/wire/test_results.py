"""Results as bytes: looked into, stamped, and otherwise left alone."""

import json

import pytest

from thoughtgate.wire import handshake, stateless
from thoughtgate.wire.results import inside, make_result, structured, text, untyped

OURS = b'{"name":"us"}'
SERVER = "io.modelcontextprotocol/serverInfo"


def test_a_look_inside_tells_absent_from_null() -> None:
    assert "structuredContent" not in inside(b'{"content":[]}')
    assert inside(b'{"structuredContent": null ,"isError":true}')["structuredContent"] is None
    assert structured(b'{"structuredContent":{"n":1}}') == {"n": 1}
    assert structured(b"{}") is None


def test_text_is_the_text_blocks_alone() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "data": "x"}, {"type": "text"}]
    raw = json.dumps({"content": [*blocks, {"type": "text", "text": "b"}]}).encode()
    assert text(raw) == "a\n\nb"
    for odd in (b"{}", b'{"content":"x"}', b'{"content":[1]}'):
        assert text(odd) == ""


def test_a_result_of_our_own_is_whole() -> None:
    raw = make_result(text="é", structured=None, is_error=True)
    assert json.loads(raw) == {
        "content": [{"type": "text", "text": "é"}],
        "structuredContent": None,
        "isError": True,
    }
    assert b"structuredContent" not in make_result(text="x")


@pytest.mark.parametrize(
    ("raw", "finished"),
    [
        (b"{}", {}),
        (b' {"content":[]} ', {"content": []}),
        (b'{ "x":"resultType" }', {"x": "resultType"}),
        (b'{"resultType":"complete","x":1}', {"x": 1}),
        (b'{"result\\u0054ype":"complete"}', {}),
        (b'{"_meta":{"%b":{"name":"them"}}}' % SERVER.encode(), {}),
        (b'{"_meta":{"k":1,"%b":{}}}' % SERVER.encode(), {"_meta": {"k": 1}}),
        (b'{"_meta":{"io.modelcontextprotocol\\/other":{}, "k":{}}}', {"_meta": {"k": {}}}),
        (b'{"x":{"_meta":{"io.modelcontextprotocol/y":1},"resultType":"z"}}', None),
    ],
)
def test_a_finished_result_carries_our_marks_only(raw: bytes, finished: object) -> None:
    wanted = json.loads(raw) if finished is None else finished
    new = json.loads(stateless.finish(raw, OURS))
    assert new.pop("resultType") == "complete"
    assert new["_meta"].pop(SERVER) == {"name": "us"}
    if not new["_meta"]:
        del new["_meta"]
    assert new == wanted
    assert json.loads(handshake.finish(raw)) == wanted
    value = inside(raw)
    assert stateless.finish(raw, OURS, value) == stateless.finish(raw, OURS)
    assert json.loads(handshake.finish(raw, value)) == wanted


def test_another_result_type_is_kept_in_its_own_era() -> None:
    assert b'"input_required"' in stateless.finish(b'{"resultType":"input_required"}', OURS)


def test_numbers_of_a_result_keep_their_spelling() -> None:
    raw = b'{"a":1.10,"b":1E2,"c":123456789012345678901234567890,"_meta":{"d":2.0e0}}'
    for finished in (stateless.finish(raw, OURS), handshake.finish(raw)):
        for spelling in (b"1.10", b"1E2", b"123456789012345678901234567890", b"2.0e0"):
            assert spelling in finished


@pytest.mark.parametrize("key", ["resultType", "resultTyp\\u0065"])
def test_a_result_type_is_taken_out_however_it_is_spelled(key: str) -> None:
    raw = f'{{"content":[ 1.10 ],"{key}":"task","_meta":{{}}}}'.encode()
    assert untyped(raw) == b'{"content":[ 1.10 ],"_meta":{}}'


@pytest.mark.parametrize("raw", [b'{"x": 1 }', b'{"x": {"resultType": 1}}', b'{"x": "\\u0065" }'])
def test_a_result_without_a_type_stays_as_it_is(raw: bytes) -> None:
    assert untyped(raw) is raw
