"""What our schema and our writer accept is what protobuf's own JSON parser accepts.

Values near each message of the test files are held against both; where they are meant to differ is
in one table, with the reason.
"""

from functools import cache
from typing import Any

import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.message import EncodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.proto_exceptions import DIFFERENCES, Difference, excepted
from tests.support.proto_values import Near
from tests.support.protos import descriptors
from thoughtgate.core.json import JsonValue
from thoughtgate.protos.descriptors import decode, encode
from thoughtgate.protos.values import ProtoValueError
from thoughtgate.schema.checks import Check
from thoughtgate.schema.registration import admit

HELD = descriptors()
TYPES = tuple(
    name for name in HELD.schemas.types if not name.startswith(("google.", "buf.", "rules."))
)
ANYS = (*TYPES, "google.protobuf.Duration", "google.protobuf.Timestamp", "google.protobuf.Value")
NEAR = Near(HELD.pool, excepted, ANYS)


@cache
def accepts(name: str) -> Check:
    return Check(HELD.schemas.accepted(HELD.message(name)))


@cache
def returns(name: str) -> Check:
    return Check(HELD.schemas.returned(HELD.message(name)))


def ours(name: str, value: JsonValue) -> bytes | None:
    """Return what we send, None when we refuse: by the schema first, as the gateway does."""
    if not accepts(name).guarded(value):
        return None
    try:
        return encode(HELD, name, value)
    except ProtoValueError:
        return None


def theirs(name: str, value: JsonValue) -> Any:
    """Return protobuf's message, None when its parser refuses."""
    message = message_factory.GetMessageClass(HELD.message(name))()
    try:
        json_format.ParseDict(value, message, descriptor_pool=HELD.pool)
        message.SerializeToString()
    except (
        json_format.ParseError, EncodeError, OverflowError, KeyError, TypeError, ValueError,
        AttributeError,
    ):  # fmt: skip
        return None
    return message


def printed(message: Any) -> JsonValue:
    return json_format.MessageToDict(
        message,
        always_print_fields_with_no_presence=True,
        preserving_proto_field_name=True,
        descriptor_pool=HELD.pool,
    )


@pytest.mark.parametrize("name", TYPES)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
@given(data=st.data())
def test_values_near_a_schema_are_accepted_by_both_or_by_neither(
    name: str, data: st.DataObject
) -> None:
    value = data.draw(NEAR.message(HELD.message(name)))
    message, wire = theirs(name, value), ours(name, value)
    assert (wire is None) == (message is None)
    if wire is None:
        return
    read = decode(HELD, name, wire)
    assert read == printed(message)
    assert returns(name).problems(read) == ()


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda one: one.reason[:40])
def test_each_difference_is_one(difference: Difference) -> None:
    for name, value in difference.examples:
        full = name if "." in name else f"kinds.v1.{name}"
        assert theirs(full, value) is not None
        assert ours(full, value) is None


@pytest.mark.parametrize("name", HELD.schemas.types)
def test_every_schema_may_be_registered(name: str) -> None:
    admit(HELD.schemas.accepted(HELD.message(name)))
    admit(HELD.schemas.returned(HELD.message(name)))
