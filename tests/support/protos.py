"""The .proto files of the tests, compiled as a tool server's descriptor set would be."""

import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

from tests.support.source import ROOT
from thoughtgate.protos.descriptors import Descriptors
from thoughtgate.protos.files import WELL_KNOWN

FOLDER = ROOT / "tests" / "data" / "protos"
NAMES = ("kinds.proto", "older.proto", "newer.proto", "rules.proto")


@cache
def compiled(*names: str) -> tuple[bytes, ...]:
    """Return the files and all that they import, comments kept, dependencies first."""
    with tempfile.TemporaryDirectory() as folder:
        target, options = Path(folder) / "set.binpb", Path(folder) / "options.binpb"
        options.write_bytes(_options())
        done = protoc.main([
            "protoc",
            f"-I{FOLDER}",
            f"-I{files('grpc_tools') / '_proto'}",
            f"--descriptor_set_in={options}",
            "--include_imports",
            "--include_source_info",
            f"--descriptor_set_out={target}",
            *names,
        ])
        assert done == 0
        held = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())
    return tuple(file.SerializeToString() for file in held.file)


def _options() -> bytes:
    """Return the definitions of options, which stand here only as descriptors."""
    held = descriptor_pb2.FileDescriptorSet()
    for raw in WELL_KNOWN.values():
        held.file.append(descriptor_pb2.FileDescriptorProto.FromString(raw))
    return held.SerializeToString()


@cache
def descriptors() -> Descriptors:
    """Return the descriptors of all files of the tests."""
    return Descriptors.of(compiled(*NAMES))
