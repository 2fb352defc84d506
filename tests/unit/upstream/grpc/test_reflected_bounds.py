"""Servers that declare, or send, too much, or in circles: bounded, and the gateway goes on."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from tests.support.grpc_orders import serving
from tests.support.grpc_reflector import Reflector
from tests.support.waiting import within
from tests.unit.upstream.grpc.test_reflected import MEANS, call
from thoughtgate.core.errors import SchemaRejected, UpstreamGarbled
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.schema.registration import admit
from thoughtgate.upstream.grpc.reflected import ReflectedLink, open_reflected
from thoughtgate.upstream.home import Home

MESSAGE = FieldDescriptorProto.TYPE_MESSAGE
REPEATED = FieldDescriptorProto.LABEL_REPEATED


def file_with(name: str, *, syntax: str = "proto3") -> FileDescriptorProto:
    """Return a file with a service of one method, from `In` to `Out`."""
    file = FileDescriptorProto(name=name, package="big", syntax=syntax)
    file.message_type.add(name="In")
    file.message_type.add(name="Out")
    service = file.service.add(name="Big")
    service.method.add(name="Do", input_type=".big.In", output_type=".big.Out")
    return file


def member(file: FileDescriptorProto, of: int, kind: str, *, repeated: bool = False) -> None:
    """Give a message of the file a member of another message's kind."""
    message = file.message_type[of]
    number = len(message.field) + 1
    made = message.field.add(name=f"m{number}", number=number, type=MESSAGE, type_name=kind)
    made.label = REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL


async def nothing(request: bytes, context: Any) -> bytes:
    return b""


@asynccontextmanager
async def linked(
    *files: FileDescriptorProto, answer: Callable[..., Any] = nothing
) -> AsyncIterator[ReflectedLink]:
    told = Reflector({file.name: file.SerializeToString() for file in files}, ["big.Big"])
    handler = grpc.method_handlers_generic_handler(
        "big.Big", {"Do": grpc.unary_unary_rpc_method_handler(answer)}
    )
    async with serving(handler, told.handler()) as port:
        transport = GrpcTransport(url=f"grpc://127.0.0.1:{port}", reflect=("*",))
        link = await within(open_reflected(transport, Home("big"), MEANS))
        try:
            yield link
        finally:
            await within(link.aclose())


async def tool(link: ReflectedLink) -> Any:
    [one] = json.loads(await link.request("tools/list", {}))["tools"]
    return one


async def test_of_ten_thousand_messages_a_tool_has_only_what_its_method_reaches() -> None:
    file = file_with("many.proto")
    for at in range(9_990):
        file.message_type.add(name=f"M{at}").field.add(name="x", number=1, type=5)
    member(file, 0, ".big.M7")
    async with linked(file) as link:
        listed = await tool(link)
    assert list(listed["inputSchema"]["$defs"]) == ["big.M7"]


async def test_a_method_that_reaches_ten_thousand_messages_is_listed_and_not_admitted() -> None:
    file = file_with("wide.proto")
    for at in range(9_990):
        file.message_type.add(name=f"M{at}")
        if at >= 1_000:
            member(file, 2 + at % 1_000, f".big.M{at}")
        else:
            member(file, 0, f".big.M{at}")
    async with linked(file) as link:
        listed = await tool(link)
    with pytest.raises(SchemaRejected):
        admit(listed["inputSchema"])


async def test_more_messages_than_that_are_refused() -> None:
    file = file_with("more.proto")
    for at in range(10_001):
        file.message_type.add(name=f"M{at}")
    with pytest.raises(UpstreamGarbled, match="descriptors cannot be used"):
        async with linked(file):
            pass


async def test_messages_that_hold_one_another_are_a_tool_and_are_called() -> None:
    file = file_with("round.proto")
    member(file, 0, ".big.Out")
    member(file, 1, ".big.In", repeated=True)
    async with linked(file) as link:
        listed = await tool(link)
        reply = await within(link.call(call(listed["name"], {"m1": {"m1": [{}, {}]}})))
    admit(listed["inputSchema"])
    assert reply.value["structuredContent"] == {"m1": []}


async def test_files_that_import_one_another_are_refused() -> None:
    one, two = file_with("one.proto"), FileDescriptorProto(name="two.proto", syntax="proto3")
    one.dependency.append("two.proto")
    two.dependency.append("one.proto")
    with pytest.raises(UpstreamGarbled, match="descriptors cannot be used"):
        async with linked(one, two):
            pass


async def test_a_file_that_the_server_does_not_have_is_named() -> None:
    file = file_with("lone.proto")
    file.dependency.append("gone.proto")
    with pytest.raises(UpstreamGarbled, match=r"gone\.proto"):
        async with linked(file):
            pass


async def test_an_answer_that_nests_too_deep_is_refused() -> None:
    file = file_with("deep.proto")
    member(file, 1, ".big.Out")

    async def deep(request: bytes, context: Any) -> bytes:
        inner = b""
        for _ in range(90):
            inner = b"\x0a" + bytes([len(inner)]) + inner if len(inner) < 128 else inner
        return inner

    async with linked(file, answer=deep) as link:
        with pytest.raises(UpstreamGarbled):
            await within(link.call(call((await tool(link))["name"], {})))


@pytest.mark.parametrize("wire", [b"\xff\xff\xff", b"\x0a\x05ab"])
async def test_an_answer_that_is_no_message_is_refused(wire: bytes) -> None:
    async def junk(request: bytes, context: Any) -> bytes:
        return wire

    async with linked(file_with("plain.proto"), answer=junk) as link:
        with pytest.raises(UpstreamGarbled):
            await within(link.call(call((await tool(link))["name"], {})))


async def test_text_that_is_no_text_becomes_text() -> None:
    file = file_with("old.proto", syntax="proto2")
    file.message_type[1].field.add(name="text", number=1, type=9, label=1)

    async def junk(request: bytes, context: Any) -> bytes:
        return b"\x0a\x02\xff\xfe"

    async with linked(file, answer=junk) as link:
        reply = await within(link.call(call((await tool(link))["name"], {})))
    assert json.loads(reply.result) == reply.value
    assert reply.value["structuredContent"] == {"text": "\ufffd\ufffd"}


async def test_few_bytes_that_become_much_json_are_refused() -> None:
    file = file_with("blown.proto")
    file.message_type.add(name="Blank")
    for number in range(1, 101):
        file.message_type[2].field.add(name=f"name_of_a_field_{number}", number=number, type=9)
    member(file, 1, ".big.Blank", repeated=True)

    async def blown(request: bytes, context: Any) -> bytes:
        return b"\x0a\x00" * 300_000

    async with linked(file, answer=blown) as link:
        with pytest.raises(UpstreamGarbled):
            await within(link.call(call((await tool(link))["name"], {})))
