"""The text of a file that people edit, and where in it something is wrong.

Never knows a format.
"""

import codecs
from pathlib import Path

BOM = "\ufeff"
"""The mark that some editors begin a file with; it is no part of what the file says."""

LARGEST = 4 * 2**20
"""Bytes of the largest file of settings that is read."""


class Unreadable(ValueError):
    """A text whose meaning cannot be told for certain; said with line and column, from 1."""

    def __init__(self, why: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {why}")


def fault(text: str, at: int, why: str) -> Unreadable:
    """Return the fault at an offset of `text`."""
    before = text[:at].replace("\r\n", "\n")
    line = before.count("\n") + 1
    column = at - text.rfind("\n", 0, at)
    return Unreadable(why, line, column)


def decoded(data: bytes, encoding: str = "utf-8") -> str:
    """Return the bytes of a file as text, with the mark that it may begin with.

    Raises:
        Unreadable: They are none.
    """
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "replace")
        raise fault(before, len(before), "not UTF-8") from None


def settings_of(data: bytes) -> str:
    """Return the bytes of a file of settings as text, in the encoding that its mark names.

    Raises:
        Unreadable: They are no text, or too many.
    """
    if len(data) > LARGEST:
        raise fault("", 0, f"larger than {LARGEST // 2**20} MiB, which no settings are")
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return decoded(data, "utf-16" if marked else "utf-8-sig")


def text_of(file: Path) -> str:
    """Return the text of a file of settings; a device without end is not read for ever.

    Raises:
        OSError: It cannot be read.
        Unreadable: It is no text, or too large.
    """
    with file.open("rb") as stream:
        return settings_of(stream.read(LARGEST + 1))
