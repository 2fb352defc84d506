"""The bytes of a file as text, with or without a byte-order mark.

Never guesses an encoding: UTF-8, or what the mark says.
"""

import codecs

from thoughtgate.core.errors import ConfigError

LARGEST = 4 * 2**20
"""Bytes that a file of servers may have."""


def decoded(data: bytes) -> str:
    """Return the text.

    Raises:
        ConfigError: It is none, or too large.
    """
    if len(data) > LARGEST:
        raise ConfigError(message=f"larger than {LARGEST // 2**20} MiB; this is no list of servers")
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(message=f"not UTF-8 text: byte {error.start} is wrong") from None
