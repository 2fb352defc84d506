"""The .proto files of the tests, compiled as a tool server's descriptor set would be."""

import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

from tests.support.source import ROOT
from thoughtgate.protos.descriptors import Descriptors

FOLDER = ROOT / "tests" / "data" / "protos"
NAMES = ("kinds.proto", "older.proto", "newer.proto")


@cache
def compiled(*names: str) -> tuple[bytes, ...]:
    """Return the files and all that they import, comments kept, dependencies first."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set.binpb"
        done = protoc.main([
            "protoc",
            f"-I{FOLDER}",
            f"-I{files('grpc_tools') / '_proto'}",
            "--include_imports",
            "--include_source_info",
            f"--descriptor_set_out={target}",
            *names,
        ])
        assert done == 0
        held = descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())
    return tuple(file.SerializeToString() for file in held.file)


@cache
def descriptors() -> Descriptors:
    """Return the descriptors of all files of the tests."""
    return Descriptors.of(compiled(*NAMES))
