"""The bytes of a file as text, with or without a byte-order mark.

Never guesses an encoding: UTF-8, or what the mark says.
"""

import codecs

from thoughtgate.config import texts
from thoughtgate.config.texts import LARGEST, Unreadable
from thoughtgate.core.errors import ConfigError


def decoded(data: bytes) -> str:
    """Return the text.

    Raises:
        ConfigError: It is none, or too large.
    """
    if len(data) > LARGEST:
        raise ConfigError(message=f"larger than {LARGEST // 2**20} MiB; this is no list of servers")
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return texts.decoded(data, "utf-16" if marked else "utf-8-sig")
    except Unreadable as error:
        raise ConfigError(message=str(error)) from None
