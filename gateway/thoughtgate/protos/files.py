"""Descriptor files of one upstream: read, bounded, completed and put in order.

Never asks anybody for a file: what is missing is named, and whoever reads the upstream fetches it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.message import DecodeError

from thoughtgate.core.errors import SchemaRejected
from thoughtgate.protos.options import BUNDLED

MAX_FILES: Final = 2_000
MAX_BYTES: Final = 32 * 1024 * 1024
MAX_MESSAGES: Final = 10_000
MAX_NESTING: Final = 32

File = descriptor_pb2.FileDescriptorProto

_MODULES = (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)

WELL_KNOWN: Final[Mapping[str, bytes]] = {
    **{module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb for module in _MODULES},
    **BUNDLED,
}
"""Files that everybody may import; ours count, whatever an upstream says."""

OF_OPTIONS: Final = frozenset({*BUNDLED, descriptor_pb2.DESCRIPTOR.name})
"""Those that define options, whose messages nobody sends."""


def read(files: Iterable[bytes]) -> dict[str, File]:
    """Return the files by name, the well-known ones that they import with them.

    Raises:
        SchemaRejected: One cannot be read, two differ under one name, one is missing, or there is
            too much of them.
    """
    held: dict[str, bytes] = {}
    read: dict[str, File] = {}
    size = 0
    for raw in files:
        file = _parsed(raw)
        if file.name in WELL_KNOWN:
            continue
        if (known := held.get(file.name)) is not None:
            if known != raw and read[file.name] != file:
                raise SchemaRejected(
                    rule="different_files",
                    message=f"two different files are called {file.name[:120]}",
                )
            continue
        held[file.name], read[file.name] = raw, file
        size += len(raw)
        if len(held) > MAX_FILES or size > MAX_BYTES:
            raise SchemaRejected(
                rule="too_large",
                message=f"more than {MAX_FILES} descriptor files, or {MAX_BYTES} bytes of them",
            )
    _bound_messages(read.values())
    for file in read.values():
        _check_text(file.name, file.extension)
    _complete(read)
    return read


def ordered(files: Mapping[str, File]) -> list[File]:
    """Return the files, each after all that it imports.

    Raises:
        SchemaRejected: Files import each other in a circle.
    """
    order: list[File] = []
    state: dict[str, bool] = {}  # False while its imports are looked at
    for root in files:
        stack = [(root, iter(files[root].dependency))] if root not in state else []
        state.setdefault(root, False)
        while stack:
            name, rest = stack[-1]
            wanted = next(rest, None)
            if wanted is None:
                state[name] = True
                order.append(files[name])
                stack.pop()
            elif wanted not in state:
                state[wanted] = False
                stack.append((wanted, iter(files[wanted].dependency)))
            elif not state[wanted]:
                raise SchemaRejected(
                    rule="cyclic_import",
                    message=f"{wanted[:120]} imports itself, by way of {name[:120]}",
                )
    return order


def messages_of(file: File) -> list[str]:
    """Return the full names of a file's messages, entries of maps left out."""
    names: list[str] = []
    scope = f"{file.package}." if file.package else ""
    todo = [(message, scope) for message in file.message_type]
    while todo:
        message, scope = todo.pop()
        if not message.options.map_entry:
            names.append(scope + message.name)
            todo.extend((inner, f"{scope}{message.name}.") for inner in message.nested_type)
    return names


def _parsed(raw: bytes) -> File:
    file = File()
    try:
        file.ParseFromString(raw)
    except DecodeError:
        raise SchemaRejected(
            rule="bad_descriptor", message="a descriptor file is not a FileDescriptorProto"
        ) from None
    if not file.name or not isinstance(file.name, str):
        raise SchemaRejected(rule="bad_descriptor", message="a descriptor file has no name")
    return file


def _bound_messages(files: Iterable[File]) -> None:
    count = 0
    todo = [(message, 1) for file in files for message in file.message_type]
    while todo:
        message, depth = todo.pop()
        count += 1
        if count > MAX_MESSAGES:
            raise SchemaRejected(
                rule="too_many_messages",
                message=f"the descriptor files hold more than {MAX_MESSAGES} messages",
            )
        if depth > MAX_NESTING:
            raise SchemaRejected(
                rule="too_deep",
                message=f"the definition of {message.name[:80]} stands inside more than "
                f"{MAX_NESTING} others",
            )
        _check_text(message.name, (*message.field, *message.extension))
        todo.extend((inner, depth + 1) for inner in message.nested_type)


def _check_text(where: str, fields: Iterable[descriptor_pb2.FieldDescriptorProto]) -> None:
    """Refuse texts that are not UTF-8 (they come as bytes) where protobuf does not look."""
    for field in fields:
        texts: tuple[object, ...] = (field.json_name, field.default_value)
        if not all(isinstance(text, str) for text in texts):
            raise SchemaRejected(
                rule="bad_descriptor",
                message=f"a field of {where[:120]} has a name or a default that is not UTF-8",
            )


def _complete(files: dict[str, File]) -> None:
    """Add the well-known files that are imported, with what they import."""
    todo = list(files.values())
    while todo:
        file = todo.pop()
        for name in file.dependency:
            if name in files:
                continue
            if name not in WELL_KNOWN:
                raise SchemaRejected(
                    rule="missing_file",
                    message=f"{file.name[:120]} imports {name[:120]}, which is not among the "
                    "descriptor files; add it",
                    pointer=name,
                )
            files[name] = _parsed(WELL_KNOWN[name])
            todo.append(files[name])
