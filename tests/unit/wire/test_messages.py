"""JSON-RPC messages: every kind, read and written."""

import itertools
import json

import msgspec
import pytest

from thoughtgate.core.json import JsonObject
from thoughtgate.wire import codes
from thoughtgate.wire.messages import (
    BadMessage,
    Failure,
    Message,
    Notification,
    Reply,
    Request,
    decode,
    encode_failure,
    encode_notification,
    encode_reply,
    encode_request,
)

PARAMS: JsonObject = {"n": 10**30, "x": None}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encode_request("1", "m", PARAMS), Request(id="1", method="m", params=PARAMS)),
        (encode_request(1, "m"), Request(id=1, method="m", params={})),
        (encode_notification("n", PARAMS), Notification(method="n", params=PARAMS)),
        (encode_notification("n"), Notification(method="n", params={})),
        (encode_reply(-1, b'{"a": 1.10}'), Reply(id=-1, result=b'{"a": 1.10}', value={"a": 1.1})),
        (encode_failure(2**70, -32000, "no"), Failure(id=2**70, code=-32000, message="no")),
        (encode_failure(None, -1, "", [0]), Failure(id=None, code=-1, message="", data=[0])),
    ],
)
def test_what_is_encoded_is_what_is_decoded(data: bytes, message: Message) -> None:
    assert decode(data) == message


def test_a_result_is_not_rebuilt() -> None:
    raw = b'{ "x" : 1E2, "y":[1.10 , 123456789012345678901234567890], "\\u00e9":"\\/" }'
    message = decode(b'{"jsonrpc":"2.0","id":1,"result": %b }' % raw)
    assert isinstance(message, Reply)
    assert message.result == raw
    assert raw in encode_reply(2, message.result)


LARGE = "x" * 5000
LIKE_MEMBERS = ',"jsonrpc":"2.0","id":1}'


@pytest.mark.parametrize("order", list(itertools.permutations(("jsonrpc", "id", "result"))))
@pytest.mark.parametrize("space", ["", " ", "\r\n\t "])
@pytest.mark.parametrize("id_", ["1", "-7", '"id"', '"result"', '"a,}"', r'"\u0069\"d"'])
@pytest.mark.parametrize(
    "result",
    [
        {"text": LARGE},
        {"text": LARGE, "id": 1, "jsonrpc": "2.0", "result": LIKE_MEMBERS},
        {"a": {"id": 5}, "text": LARGE + LIKE_MEMBERS},
        {"text": LARGE, "last": "\\"},
    ],
    ids=["plain", "same members", "members in a text", "backslash last"],
)
def test_a_large_result_is_cut_out_wherever_it_stands(
    order: tuple[str, ...], space: str, id_: str, result: JsonObject
) -> None:
    inner = json.dumps(result)
    texts = {"jsonrpc": '"2.0"', "id": id_, "result": inner}
    members = (f'{space}"{name}"{space}:{space}{texts[name]}{space}' for name in order)
    data = f"{space}{{{','.join(members)}}}{space}".encode()
    message = decode(data)
    assert message == Reply(id=json.loads(id_), result=inner.encode(), value=result)


def test_a_large_result_beside_members_that_nobody_knows_is_found() -> None:
    inner = json.dumps({"text": LARGE})
    for data in (
        f'{{"jsonrpc":"2.0","id":1,"x":{LARGE!r},"result":{inner}}}'.replace("'", '"'),
        f'{{"jsonrpc":"2.0","id":1,"result":{inner},"x":[{{"result":{inner}}}]}}',
    ):
        message = decode(data.encode())
        assert isinstance(message, Reply)
        assert (
            message.result
            == inner.encode()
            == msgspec.json.encode(message.value).replace(b'":"', b'": "')
        )


@pytest.mark.parametrize(
    ("value", "code", "id_"),
    [
        ([], codes.INVALID_REQUEST, None),
        (7, codes.INVALID_REQUEST, None),
        ({}, codes.INVALID_REQUEST, None),
        ({"jsonrpc": "1.0", "id": 1, "method": "m"}, codes.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "id": 1}, codes.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": None}, codes.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "m", "params": [1]}, codes.INVALID_PARAMS, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "m", "params": None}, codes.INVALID_PARAMS, 1),
        ({"jsonrpc": "2.0", "id": 1, "result": 5}, codes.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "result": {}}, codes.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": None, "result": {}}, codes.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": None, "method": "m"}, codes.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": 1.0, "method": "m"}, codes.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": True, "method": "m"}, codes.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": "x" * 257, "method": "m"}, codes.INVALID_REQUEST, None),
        ({"jsonrpc": "2.0", "id": 1, "error": "no"}, codes.INVALID_REQUEST, 1),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}}, codes.INVALID_REQUEST, 1),
    ],
)
def test_what_is_no_message_is_refused_under_its_id(value: object, code: int, id_: object) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(json.dumps(value).encode())
    assert (caught.value.rpc_code, caught.value.id) == (code, id_)


def test_what_is_not_json_is_a_parse_error() -> None:
    with pytest.raises(BadMessage) as caught:
        decode(b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}')
    assert caught.value.rpc_code == codes.PARSE_ERROR


def test_content_may_be_as_deep_as_the_limit_says() -> None:
    content = b"[" * 64 + b"]" * 64
    for text in (
        b'{"jsonrpc":"2.0","id":1,"result":{"x":%b}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":%b}}',
    ):
        decode(text % content)
        with pytest.raises(BadMessage):
            decode(text % (b"[" + content + b"]"))
