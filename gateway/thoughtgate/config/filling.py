"""Variables in a configuration: `${NAME}`, `${env:NAME}` and `${NAME:-default}`.

Never lets an entry through of which a variable is missing: it would be another entry.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from thoughtgate.config.faults import Fault
from thoughtgate.config.settings import ModelSettings, ServerSettings, Settings

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_MUST_BE_SET = "the variable {0} is not set; set it, or write ${{{0}:-default}}"

FILES = ("descriptor_set", "tls_ca", "tls_cert", "tls_key")
"""Settings of a server that name files."""

T = TypeVar("T")


class Filler:
    """Fills in what is set in `environ`; what is missing stands in `faults`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.faults: list[Fault] = []
        self._environ = environ

    def filled(self, settings: Settings) -> Settings:
        """Return the settings filled in, without the servers and models that lack a variable."""
        return msgspec.structs.replace(
            settings,
            servers=self._entries(settings.servers, "servers", self._server),
            models=self._entries(settings.models, "models", self._model),
        )

    def _entries(
        self, given: Mapping[str, T], table: str, fill: Callable[[T, str], T]
    ) -> dict[str, T]:
        kept = {}
        for name, entry in given.items():
            before = len(self.faults)
            done = fill(entry, f"{table}.{name}")
            if len(self.faults) == before:
                kept[name] = done
        return kept

    def _server(self, given: ServerSettings, at: str) -> ServerSettings:
        fill = self._text
        return msgspec.structs.replace(
            given,
            command=tuple(fill(part, f"{at}.command") for part in given.command),
            env={k: fill(v, f"{at}.env.{k}") for k, v in given.env.items()},
            url=fill(given.url, f"{at}.url"),
            headers={k: fill(v, f"{at}.headers.{k}") for k, v in given.headers.items()},
            **{key: fill(getattr(given, key), f"{at}.{key}") for key in FILES},
        )

    def _model(self, given: ModelSettings, at: str) -> ModelSettings:
        return msgspec.structs.replace(given, api_key=self._text(given.api_key, f"{at}.api_key"))

    def _text(self, value: str, key: str) -> str:
        def found(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if name in self._environ:
                return self._environ[name]
            if default is not None:
                return default
            fault = Fault(key=key, text=_MUST_BE_SET.format(name), variable=name)
            if fault not in self.faults:
                self.faults.append(fault)
            return match[0]

        return _VARIABLE.sub(found, value)


def variables(text: str) -> tuple[str, ...]:
    """Return the names of the variables that a text is filled in with."""
    return tuple(match[1] for match in _VARIABLE.finditer(text))
