"""No engine ever fetches a reference: a listener on loopback counts who comes."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from referencing.exceptions import Unresolvable

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonValue
from thoughtgate.schema.checks import Check
from thoughtgate.schema.dialects import DIALECTS, DRAFT_2020_12, Dialect, registry, rust
from thoughtgate.schema.reference import Run, search
from thoughtgate.schema.registration import admit, admit_unlinted


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def assert_nobody_came(listener: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        listener.accept()


def address(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_registration_refuses_a_remote_reference_and_does_not_follow_it(
    listener: socket.socket, keyword: str, dialect: Dialect
) -> None:
    schema = {"$schema": dialect.uri, "properties": {"a": {keyword: address(listener)}}}

    with pytest.raises(SchemaRejected) as caught:
        admit(schema)

    assert (caught.value.rule, caught.value.pointer) == (
        "remote_reference",
        f"/properties/a/{keyword}",
    )
    assert_nobody_came(listener)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_even_without_the_lint_no_engine_follows_one(
    listener: socket.socket, dialect: Dialect
) -> None:
    """Each wall stands alone: the engines are offline should the lint ever miss a reference."""
    schema = {"properties": {"a": {"$ref": address(listener)}}}

    with pytest.raises(SchemaRejected) as caught:
        admit_unlinted(schema, dialect=dialect)
    with pytest.raises(SchemaRejected):
        rust(schema, dialect)
    with pytest.raises(Unresolvable):
        search(schema, dialect, {"a": 1}, Run())
    with pytest.raises(Unresolvable):
        list(dialect.reference(schema, registry=registry(dialect)).iter_errors({"a": 1}))

    assert caught.value.rule == "uncompilable"
    assert_nobody_came(listener)


def test_no_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "schema.json"
    secret.write_text('{"type": "integer"}', encoding="utf-8")
    schema = {"properties": {"a": {"$ref": secret.as_uri()}}}

    for attempt in (admit, Check):
        with pytest.raises(SchemaRejected):
            attempt(schema)
    with pytest.raises(SchemaRejected):
        rust(schema, DRAFT_2020_12)


@pytest.mark.parametrize(
    "schema",
    [
        {"$id": "http://127.0.0.1:9/a.json", "properties": {"a": {"$ref": "b.json"}}},
        {"properties": {"a": {"$id": "http://127.0.0.1:9/a.json", "$ref": "#/x"}}},
        {"$schema": "http://127.0.0.1:9/meta.json"},
        {"properties": {"a": {"$schema": "http://127.0.0.1:9/meta.json"}}},
        {"$defs": {"unused": {"$ref": "//127.0.0.1:9/a.json"}}},
    ],
)
def test_every_way_out_of_a_schema_is_closed(schema: JsonValue) -> None:
    with pytest.raises(SchemaRejected):
        admit(schema)
