"""Whose request a broken message was: told only where there is no doubt."""

import pytest

from thoughtgate.wire.messages import BadMessage, decode
from thoughtgate.wire.salvage import asked_id


@pytest.mark.parametrize(
    ("data", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":4,"method":"m","params":{"a":NaN}}', 4),
        (b'{"method":"m","params":{"a":1,"a":2},"id":"x"}', "x"),
        (b'{"jsonrpc":"2.0","id":"\xc3\xa9","method":"m","params":{"t":"\xff"}}', "é"),
        (
            b'{"jsonrpc": "2.0", "id": -6, "method": "m", "x":' + b"[" * 5000 + b"]" * 5000 + b"}",
            -6,
        ),
        (b'{"jsonrpc":"2.0","id":"a-1","method":"m","params":' + b"[" * 5000, "a-1"),
        (b'{"jsonrpc":"2.0","method":7,"id":7}', 7),
        (b'{"id":8.0,"method":"m"}', 8),
        (b'{"id":1,"id":2,"method":"m"}', None),
        (b'{"id":1,"result":NaN}', None),
        (b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 5000, None),
        (b'{"id":' + b"9" * 200 + b',"method":"m","a":NaN}', None),
        (b'{"id":1.5,"method":"m","a":NaN}', None),
        (b'[{"id":1,"method":"m"}]', None),
        (b'{"id":1,"meth', None),
    ],
)
def test_a_broken_request_says_whose_it_is(data: bytes, id_: object) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(data)
    assert asked_id(data, caught.value) == id_
