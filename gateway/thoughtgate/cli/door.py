"""The door of the command line: where every error becomes a message and an exit code.

Never hides what went wrong from programs: with `--json` the error stands on stdout as well.
"""

import logging
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import click

from thoughtgate.cli.exits import Exit, code_of
from thoughtgate.cli.output import note, show
from thoughtgate.core.errors import ConfigError, GateError, facts, told
from thoughtgate.core.json import JsonObject

DEBUG = "THOUGHTGATE_DEBUG"
"""The variable of the environment that asks for the traceback of a bug."""


class Door(click.Group):
    """The one place where an error becomes a message and an exit code."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override] # click types the keyword arguments that we pass on
        """Run the command that `args` name and end the process with its exit code."""
        given = sys.argv[1:] if args is None else args
        sys.exit(int(self._ended(given, {**extra, "standalone_mode": False})))

    def _ended(self, args: Sequence[str], extra: dict[str, Any]) -> int:
        code: int = Exit.OK
        try:
            _check_text(args)
            code = super().main(args, **extra) or Exit.OK
        except click.exceptions.Exit as ended:
            code = ended.exit_code
        except (click.Abort, KeyboardInterrupt):
            note("interrupted")
            code = Exit.INTERRUPTED
        except click.ClickException as error:
            error.show()
            _tell(args, "usage", error.format_message(), {})
            code = Exit.USAGE
        except GateError as error:
            note(f"error: {told(error)}")
            _tell(args, error.code, error.message, facts(error))
            code = code_of(error)
        return code


def say_bugs() -> None:
    """From now on a bug ends this process in one line; the traceback is there for who asks."""
    sys.excepthook = _bug


def _bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say what nobody caught; the process ends with 1 by itself."""
    wanted = os.environ.get(DEBUG) or logging.getLogger().isEnabledFor(logging.DEBUG)
    if wanted or not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, trace)
        return
    message = f"internal: {kind.__name__}"
    note(f"error: {message}\nset {DEBUG}=1 for the traceback, and report it")
    _tell(sys.argv[1:], "internal", message, {})


def _tell(args: Sequence[str], code: str, message: str, data: JsonObject) -> None:
    """Print the error for the program that asked for JSON; what follows `--` is not ours."""
    ours = args[: args.index("--")] if "--" in args else args
    if "--json" in ours:
        show({"error": code, "message": message, "data": data}, (), as_json=True)


def _check_text(args: Sequence[str]) -> None:
    """Refuse what the system gave us as bytes that are no text: nothing could be done with it."""
    for number, word in enumerate(args, start=1):
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ConfigError(message=f"argument {number} is not UTF-8: {word[:80]}") from None
