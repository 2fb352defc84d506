"""The token of the admin API: random text in a file that only its owner can read.

Never a default, never shown, and never taken from a file that others could have read or written.
"""

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from thoughtgate.core.errors import ConfigError
from thoughtgate.registry.files import new_file

TOKEN_FILE = "admin.token"
"""Its name in the state folder."""

_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,200}")


def ensured_token(path: Path) -> str:
    """Return the token in a file, made when there is none.

    Raises:
        ConfigError: The file cannot be used, and what to do.
    """
    if not os.path.lexists(path):
        try:
            with suppress(FileExistsError), new_file(path) as partial:  # another gateway was faster
                partial.write_text(secrets.token_urlsafe(_BYTES) + "\n", encoding="ascii")
        except OSError as error:
            raise _unusable(path, (error.strerror or "error").lower()) from None
    return read_token(path)


def read_token(path: Path) -> str:
    """Return the token in a file.

    Raises:
        ConfigError: There is none, or others could have read it, and what to do.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        why = "there is no such file; a gateway makes it in its state folder when it first serves"
        raise ConfigError(message=f"the token file {path}: {why}") from None
    except OSError as error:
        raise _unusable(path, (error.strerror or "error").lower()) from None
    try:
        _check(path, os.fstat(descriptor))
        text = os.read(descriptor, 1024).decode("latin-1").strip()
    finally:
        os.close(descriptor)
    if _TOKEN.fullmatch(text) is None:
        raise _unusable(path, "it holds no token; remove it, and the next gateway makes a new one")
    return text


def _check(path: Path, status: os.stat_result) -> None:
    """Refuse a file that somebody else may know or have made."""
    if not stat.S_ISREG(status.st_mode):
        raise _unusable(path, "it is not a regular file")
    if status.st_uid != os.geteuid():
        raise _unusable(path, "it belongs to another user; remove it")
    if status.st_mode & 0o077:
        raise _unusable(
            path,
            "others may have read it; remove it and start the gateway again for a new token, "
            "or run chmod 600 on it if nobody did",
        )


def _unusable(path: Path, why: str) -> ConfigError:
    return ConfigError(message=f"cannot use the token file {path}: {why}")
