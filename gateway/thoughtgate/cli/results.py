"""What a tool answered, for people: text as it is, everything else in one line.

Never writes a file that is there already, and never under a name that a server chose.
"""

import base64
import binascii
import json
import mimetypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from thoughtgate.cli.output import clean, one_line
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonObject

_UNKNOWN = "application/octet-stream"


def result_lines(result: JsonObject, folder: Path | None) -> Iterator[str]:
    """Yield a result in clean lines; files in it are saved in `folder` when that is given.

    Raises:
        ConfigError: A file cannot be saved.
    """
    content = result.get("content")
    blocks = [block for block in content or () if isinstance(block, dict)]
    if not blocks:
        yield from clean(json.dumps(result, ensure_ascii=False, indent=2)).split("\n")
    for number, block in enumerate(blocks, start=1):
        if block.get("type") == "text":
            yield from clean(str(block.get("text") or "")).split("\n")
        else:
            yield one_line(_told(block, number, folder))


def _told(block: JsonObject, number: int, folder: Path | None) -> str:
    kind = str(block.get("type"))
    if kind == "resource_link":
        size = block.get("size")
        facts = (block.get("mimeType"), None if size is None else f"{size} bytes")
        return f"resource link: {block.get('uri')} ({_joined(*facts)})"
    inner = block.get("resource")
    holder: Mapping[str, Any] = inner if isinstance(inner, dict) else block
    data = _data(holder)
    mime = str(holder.get("mimeType") or ("text/plain" if "text" in holder else _UNKNOWN))
    name = f"{kind}: {holder['uri']}" if "uri" in holder else kind
    if data is None:
        return f"{name} ({_joined(mime, 'what it holds cannot be read')})"
    said = f"{name} ({_joined(mime, f'{len(data)} bytes')})"
    return said if folder is None else f"{said}, saved as {_saved(data, mime, number, folder)}"


def _joined(*facts: object) -> str:
    return ", ".join(str(fact) for fact in facts if fact)


def _data(holder: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of a block, None when there are none that could be read."""
    if isinstance(holder.get("text"), str):
        return str(holder["text"]).encode("utf-8", "surrogatepass")
    coded = holder.get("data", holder.get("blob"))
    try:
        return base64.b64decode(coded, validate=True) if isinstance(coded, str) else None
    except binascii.Error:
        return None


def _saved(data: bytes, mime: str, number: int, folder: Path) -> Path:
    ending = mimetypes.guess_extension(mime.partition(";")[0].strip()) or ".bin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for again in range(1, 10_000):
            file = folder / (f"{number}{ending}" if again == 1 else f"{number}-{again}{ending}")
            try:
                with file.open("xb") as stream:
                    stream.write(data)
            except FileExistsError:
                continue
            return file
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(message=f"--save: {folder}: cannot be written: {reason}") from None
    raise ConfigError(message=f"--save: {folder}: it is full of files of such names")
