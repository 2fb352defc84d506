"""Comments of a descriptor file, by the full name of what they stand at.

Never there by reflection from Python servers, which strip them; a descriptor set keeps them.
"""

from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

MAX_COMMENT: Final = 2_000

_Path = tuple[int, ...]


def comments_of(file: FileDescriptorProto) -> dict[str, str]:
    """Return what is said of each message, field, oneof, enum, value, service and method."""
    said = {
        tuple(location.path): text
        for location in file.source_code_info.location
        if (text := _clean(location.leading_comments or location.trailing_comments))
    }
    if not said:
        return {}
    return {name: said[path] for path, name in _named(file) if path in said}


def _clean(comment: str | bytes) -> str:
    """Return a comment without markers for linters; one that is not UTF-8 comes as bytes."""
    if isinstance(comment, bytes):
        return ""
    lines = (line.strip() for line in comment[: 2 * MAX_COMMENT].strip().splitlines())
    kept = [line for line in lines if not line.startswith("buf:lint:")]
    return "\n".join(kept).strip()[:MAX_COMMENT]


def _named(file: FileDescriptorProto) -> Iterator[tuple[_Path, str]]:
    """Yield the paths of everything that may have a comment, with its full name."""
    scope = f"{file.package}." if file.package else ""
    for number, message in enumerate(file.message_type):
        yield from _inside(message, scope, (4, number))
    for number, enum in enumerate(file.enum_type):
        yield from _values(enum, scope, (5, number))
    for number, service in enumerate(file.service):
        yield (6, number), scope + service.name
        for index, method in enumerate(service.method):
            yield (6, number, 2, index), f"{scope}{service.name}.{method.name}"
    for number, extension in enumerate(file.extension):
        yield (7, number), scope + extension.name


def _inside(root: DescriptorProto, scope: str, path: _Path) -> Iterator[tuple[_Path, str]]:
    todo = [(root, scope + root.name, path)]
    while todo:
        message, name, place = todo.pop()
        yield place, name
        for number, field in enumerate(message.field):
            yield (*place, 2, number), f"{name}.{field.name}"
        for number, extension in enumerate(message.extension):
            yield (*place, 6, number), f"{name}.{extension.name}"
        for number, oneof in enumerate(message.oneof_decl):
            yield (*place, 8, number), f"{name}.{oneof.name}"
        for number, enum in enumerate(message.enum_type):
            yield from _values(enum, f"{name}.", (*place, 4, number))
        for number, inner in enumerate(message.nested_type):
            todo.append((inner, f"{name}.{inner.name}", (*place, 3, number)))


def _values(enum: EnumDescriptorProto, scope: str, path: _Path) -> Iterator[tuple[_Path, str]]:
    yield path, scope + enum.name
    for number, value in enumerate(enum.value):
        yield (*path, 2, number), f"{scope}{enum.name}.{value.name}"
