"""Batches: what is one, and what each of its messages is."""

import json

import pytest

from thoughtgate.wire.batches import MAX_MESSAGES, decode_batch, is_batch, read_batch
from thoughtgate.wire.messages import BadMessage, Notification, Reply, Request

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def encoded(*messages: object) -> bytes:
    return json.dumps(messages).encode()


def test_messages_keep_their_order_and_a_bad_one_its_place() -> None:
    reply = {"jsonrpc": "2.0", "id": 7, "result": {"n": 1}}
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    bad = {"jsonrpc": "2.0", "id": 8, "method": 9}
    found = decode_batch(encoded(PING, bad, note, reply, 5, []))
    kinds = [type(one) for one in found]
    assert kinds == [Request, BadMessage, Notification, Reply, BadMessage, BadMessage]
    assert [getattr(one, "id", None) for one in found] == [1, 8, None, 7, None, None]


def test_a_result_inside_a_batch_is_kept_as_it_came() -> None:
    (reply,) = decode_batch(b'[ {"jsonrpc":"2.0","id":1,"result":{"n": 1.10}} ]')
    assert isinstance(reply, Reply)
    assert reply.result == b'{"n": 1.10}'


def test_what_is_strict_alone_is_strict_in_a_batch() -> None:
    for bad in (b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}', b'{"a":NaN}'[:-1] + b"}"):
        data = b"[" + bad + b"]"
        try:
            (one,) = decode_batch(data)
        except BadMessage as error:
            one = error
        assert isinstance(one, BadMessage)
        assert one.rpc_code == -32700


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"[", -32700),
        (b"[\xff]", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (encoded(*[PING] * (MAX_MESSAGES + 1)), -32600),
        (encoded(PING, PING), -32600),
        (encoded(PING, {**PING, "id": 2, "method": "initialize"}), -32600),
    ],
)
def test_a_batch_that_is_none_is_refused(data: bytes, code: int) -> None:
    with pytest.raises(BadMessage) as caught:
        decode_batch(data)
    assert caught.value.rpc_code == code


def test_one_and_its_spelling_are_two_ids() -> None:
    assert len(decode_batch(encoded(PING, {**PING, "id": "1"}))) == 2


def test_only_one_version_has_batches() -> None:
    assert len(read_batch(encoded(PING), "2025-03-26")) == 1
    for version in ("2024-11-05", "2025-06-18", "2025-11-25", ""):
        with pytest.raises(BadMessage):
            read_batch(encoded(PING), version)


def test_a_batch_is_known_by_its_first_letter() -> None:
    assert is_batch(b" \r\n\t[1]")
    assert not is_batch(b'{"a":[]}')
    assert not is_batch(b"")
