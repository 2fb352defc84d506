"""The page about gRPC messages names every kind, every rule and every difference."""

import re

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from tests.support.proto_exceptions import DIFFERENCES
from tests.support.source import ROOT, text_of
from thoughtgate.protos import fields, files, options
from thoughtgate.protos.reading import MAX_LEVELS
from thoughtgate.protos.schemas import MAX_SUBSCHEMAS
from thoughtgate.protos.values import MAX_FRAMES

PAGE = text_of(ROOT / "docs" / "explanation" / "grpc-mapping.md")
NAMED = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))


def test_every_kind_of_field_has_a_row() -> None:
    kinds = descriptor_pb2.FieldDescriptorProto.Type.keys()
    assert {kind.removeprefix("TYPE_").lower() for kind in kinds} - NAMED == set()


def test_every_well_known_type_has_a_row() -> None:
    known = {*fields.SPECIAL, fields.NULL_VALUE, "google.protobuf.Empty"}
    assert known - NAMED == set()


def test_every_rule_is_explained() -> None:
    pool = descriptor_pool.DescriptorPool()
    for name in ("descriptor", "duration", "field_mask", "timestamp"):
        pool.AddSerializedFile(files.WELL_KNOWN[f"google/protobuf/{name}.proto"])
    pool.AddSerializedFile(options.BUNDLED["buf/validate/validate.proto"])
    rules = pool.FindMessageTypeByName("buf.validate.FieldRules")
    kinds = rules.oneofs_by_name["type"].fields
    names = {field.name for field in rules.fields} - {kind.name for kind in kinds}
    for kind in kinds:
        assert kind.message_type is not None
        names |= {field.name for field in kind.message_type.fields}
    assert len(names) > 50
    assert names - NAMED == set()


def test_every_behavior_is_explained() -> None:
    assert set(options.BEHAVIORS[1:]) - NAMED == set()


def test_every_difference_is_listed_and_no_other() -> None:
    section = PAGE.partition("## Stricter than protobuf")[2].partition("\n## ")[0]
    listed = re.findall(r"^- (.+)$", section, re.MULTILINE)
    assert listed == [difference.reason for difference in DIFFERENCES]


@pytest.mark.parametrize(
    "said",
    [
        f"{files.MAX_FILES:,} files",
        f"{files.MAX_BYTES >> 20} MiB",
        f"{files.MAX_MESSAGES:,} messages",
        f"{files.MAX_NESTING} inside",
        f"{MAX_FRAMES} levels",
        f"a result at most {MAX_LEVELS}",
        f"{MAX_SUBSCHEMAS:,} fields and types",
    ],
)
def test_a_limit_on_the_page_is_the_one_in_the_code(said: str) -> None:
    assert said in PAGE.partition("## Limits")[2].replace("\n", " ")
