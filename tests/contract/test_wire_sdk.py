"""The wire held against the SDK: what it writes we read, what we write it reads, verdicts agree."""

import json
from typing import Any

import mcp.types as sdk
import mcp_types._v2025_11_25 as old_types
import mcp_types._v2026_07_28 as new_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound
from mcp.types import jsonrpc_message_adapter

from thoughtgate.core.calls import Notice, NoticeKind
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.wire import codes, handshake, headers, messages, methods, stateless
from thoughtgate.wire.messages import BadMessage

INFO = {"name": "us", "version": "1"}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


def test_one_list_of_versions_and_codes() -> None:
    assert handshake.VERSIONS == sdk.version.HANDSHAKE_PROTOCOL_VERSIONS
    assert stateless.VERSIONS == sdk.version.MODERN_PROTOCOL_VERSIONS
    assert codes.HEADER_MISMATCH == sdk.HEADER_MISMATCH
    assert codes.MISSING_CAPABILITY == sdk.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert codes.UNSUPPORTED_VERSION == sdk.UNSUPPORTED_PROTOCOL_VERSION
    for code, status in inbound.ERROR_CODE_HTTP_STATUS.items():
        assert stateless.status_of(code) == status


@pytest.mark.parametrize(
    "data",
    [
        messages.encode_request(1, "tools/list", {}),
        messages.encode_request("a", "ping"),
        messages.encode_notification("notifications/initialized"),
        messages.encode_reply(1, b'{"content":[]}'),
        messages.encode_failure("a", -32601, "no", {"x": 1}),
    ],
)
def test_the_sdk_reads_our_messages_and_we_read_its(data: bytes) -> None:
    model = jsonrpc_message_adapter.validate_json(data, by_name=False)
    theirs = model.model_dump_json(by_alias=True, exclude_unset=True).encode()
    assert messages.decode(theirs) == messages.decode(data)


def test_the_sdk_reads_our_results() -> None:
    welcome = handshake.Welcome(
        version="2025-11-25", server_info=INFO, capabilities={"logging": {}}, instructions="x"
    )
    found = stateless.Discovered(
        versions=stateless.VERSIONS, server_info=INFO, capabilities={}, instructions="x"
    )
    tools = json.dumps([TOOL]).encode()
    info = json.dumps(INFO).encode()
    old_types.InitializeResult.model_validate_json(handshake.welcome_result(welcome))
    old_types.ListToolsResult.model_validate_json(handshake.list_result(tools, "c"))
    new_types.DiscoverResult.model_validate_json(stateless.discover_result(found, 0))
    new_types.ListToolsResult.model_validate_json(stateless.list_result(tools, None, 0, info))
    new_types.CallToolResult.model_validate_json(stateless.finish(b'{"content":[]}', info))
    new_types.SubscriptionsListenResult.model_validate_json(stateless.listen_result("s"))


def test_the_sdk_reads_our_notifications() -> None:
    progress = methods.encode_notice(Notice(kind=NoticeKind.PROGRESS, params={"progress": 1}), 1)
    log = {"level": "info", "data": {"x": 1}}
    assert progress is not None
    new_types.ProgressNotification.model_validate_json(progress)
    frame = methods.encode_notice(Notice(kind=NoticeKind.LOG, params=log), None)
    assert frame is not None
    new_types.LoggingMessageNotification.model_validate_json(frame)
    acknowledged = stateless.acknowledged("s", stateless.Filter(lists=frozenset({"tools"})))
    new_types.SubscriptionsAcknowledgedNotification.model_validate_json(acknowledged)
    new_types.ToolListChangedNotification.model_validate_json(
        stateless.subscribed(1, methods.TOOLS_CHANGED, {})
    )


def test_the_sdk_reads_our_requests() -> None:
    meta = stateless.envelope_meta(INFO, {}, "info")
    for model, params in (
        (new_types.CallToolRequestParams, methods.call_params("t", {"a": 1}, meta)),
        (new_types.PaginatedRequestParams, methods.list_params("c", meta)),
        (new_types.SubscriptionsListenRequestParams, stateless.listen_params(meta)),
        (old_types.InitializeRequestParams, handshake.hello_params(INFO, {})),
        (old_types.CancelledNotificationParams, methods.cancelled_params(3)),
    ):
        model.model_validate(params)


VERSION_VALUES = st.sampled_from(["2026-07-28", "2025-11-25", "2099-01-01"])
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["t", "é", "=?base64?eA==?="]),
        "_meta": st.fixed_dictionaries(
            {},
            optional={
                stateless.VERSION_KEY: VERSION_VALUES,
                stateless.CAPABILITIES_KEY: st.just({}),
                stateless.CLIENT_KEY: st.just(INFO),
            },
        ),
    },
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": VERSION_VALUES,
        "mcp-method": st.sampled_from(["tools/call", "tools/list"]),
        "mcp-name": st.sampled_from(["t", "=?base64?w6k=?=", "=?base64?eA==?=", "x"]),
    },
)


@given(
    method=st.sampled_from(["tools/call", "tools/list"]), params=PARAMS, sent=HEADERS | st.none()
)
def test_an_envelope_gets_the_sdk_s_verdict(
    method: str, params: dict[str, Any], sent: dict[str, str] | None
) -> None:
    verdict = inbound.classify_inbound_request({"method": method, "params": params}, headers=sent)
    theirs = getattr(verdict, "code", 0)
    try:
        stateless.read_envelope(method, params, sent)
        ours = 0
    except BadMessage as error:
        ours = error.rpc_code
    assert ours == theirs


TYPES = st.sampled_from(["string", "integer", "boolean", "number", "object", ["string"]])
TOKENS = st.sampled_from(["A", "a", "B-1", "", "no space", 7])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPES, "x-mcp-header": TOKENS}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "$defs": st.dictionaries(st.sampled_from("xy"), inner, max_size=1),
            "default": inner,
        },
    ),
    max_leaves=6,
)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ARGUMENTS = st.dictionaries(
    st.sampled_from("abc"),
    SCALARS | st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3),
    max_size=3,
)


@given(schema=SCHEMAS, arguments=ARGUMENTS)
def test_the_sdk_agrees_what_is_mirrored_and_how(schema: Any, arguments: Any) -> None:
    try:
        wanted = headers.mirrored(schema)
    except SchemaRejected:
        assert inbound.find_invalid_x_mcp_header(schema) is not None
        return
    assert inbound.find_invalid_x_mcp_header(schema) is None
    ours = headers.param_headers(wanted, arguments)
    theirs = inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), arguments)
    assert ours == {name.lower(): value for name, value in theirs.items()}
    assert inbound.validate_mcp_param_headers(schema, arguments, ours) is None
    assert headers.mismatch(wanted, arguments, ours) is None


@given(st.text())
def test_the_sdk_reads_our_header_values(value: str) -> None:
    assert inbound.decode_header_value(headers.encode_value(value)) == value
    assert headers.encode_value(value) == inbound.encode_header_value(value)
