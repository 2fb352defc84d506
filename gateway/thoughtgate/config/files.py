"""Configuration files: found, read, filled in and checked.

Never opens anything but the one file it is given.
"""

import ipaddress
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import platformdirs

from thoughtgate.config.faults import first_fault
from thoughtgate.config.settings import GatewaySettings, ServerSettings, Settings
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.json import JsonObject, canonical
from thoughtgate.core.servers import BUILT_IN

CONFIG_VARIABLE = "THOUGHTGATE_CONFIG"
HOME_VARIABLE = "THOUGHTGATE_HOME"
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HOST = re.compile(r"[^\s:/@\[\]]+|[0-9A-Fa-f:.]+")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@]+")


class Loaded(msgspec.Struct, kw_only=True, frozen=True):
    """Settings with the place they came from: the file (None: defaults) and the state folder.

    `written` is what the file says, variables not filled in: what may be shown of it.
    """

    settings: Settings
    file: Path | None
    home: Path
    written: Settings = Settings()


def load(file: Path | None, environ: Mapping[str, str]) -> Loaded:
    """Read the configuration file, or the defaults when there is none.

    `file` wins over `THOUGHTGATE_CONFIG`, which wins over `thoughtgate.toml` in the user's
    configuration folder. `THOUGHTGATE_HOME` moves the state folder.

    Raises:
        ConfigError: The file cannot be read or says something that is not allowed.
    """
    chosen = file or _default_file(environ)
    home = Path(environ.get(HOME_VARIABLE) or platformdirs.user_data_path("thoughtgate"))
    if chosen is None:
        return Loaded(settings=Settings(), file=None, home=home)
    where = str(chosen)
    written = _written(_read(chosen), where)
    settings = _filled(written, where, environ)
    return Loaded(settings=settings, file=chosen, home=home, written=written)


def parse(text: str, where: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings in a TOML text; `where` names it in errors.

    Raises:
        ConfigError: Not TOML, an unknown or ill-typed key, an unset variable, or entries that
            contradict each other.
    """
    return _filled(_written(text, where), where, environ)


def _written(text: str, where: str) -> Settings:
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an integer of too many digits is a ValueError
        raise ConfigError(message=f"{where}: not valid TOML: {error}") from None
    try:
        return msgspec.convert(raw, Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(message=f"{where}: {first_fault(raw, Settings) or error}") from None


def _filled(settings: Settings, where: str, environ: Mapping[str, str]) -> Settings:
    filled = _Filler(environ, where)
    servers = {name: _filled_server(name, s, filled) for name, s in settings.servers.items()}
    models = {
        name: msgspec.structs.replace(m, api_key=filled(m.api_key, f"models.{name}.api_key"))
        for name, m in settings.models.items()
    }
    settings = msgspec.structs.replace(settings, servers=servers, models=models)
    _agree(settings, where)
    return settings


def _default_file(environ: Mapping[str, str]) -> Path | None:
    named = environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    usual = platformdirs.user_config_path("thoughtgate") / "thoughtgate.toml"
    return usual if usual.is_file() else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(message=f"{file}: no such configuration file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(message=f"{file}: cannot be read: {error}") from None


class _Filler:
    """Fills `${NAME}`, `${env:NAME}` and `${NAME:-default}` in values."""

    def __init__(self, environ: Mapping[str, str], where: str) -> None:
        self._environ = environ
        self._where = where

    def __call__(self, value: str, key: str) -> str:
        def found(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if name in self._environ:
                return self._environ[name]
            if default is not None:
                return default
            raise ConfigError(
                message=f"{self._where}: {key}: the variable {name} is not set; "
                f"set it, or write ${{{name}:-default}}"
            )

        return _VARIABLE.sub(found, value)


def _filled_server(
    name: str, given: ServerSettings, filled: Callable[[str, str], str]
) -> ServerSettings:
    at = f"servers.{name}"
    return msgspec.structs.replace(
        given,
        command=tuple(filled(part, f"{at}.command") for part in given.command),
        env={k: filled(v, f"{at}.env.{k}") for k, v in given.env.items()},
        url=filled(given.url, f"{at}.url"),
        headers={k: filled(v, f"{at}.headers.{k}") for k, v in given.headers.items()},
    )


def _agree(settings: Settings, where: str) -> None:
    if not _is_loopback(settings.gateway.host):
        raise ConfigError(
            message=f"{where}: gateway.host: {settings.gateway.host} is not a loopback address; "
            "a gateway without authentication listens on 127.0.0.1 or ::1 only"
        )
    _check_front(settings.gateway, where)
    for name, server in settings.servers.items():
        if name == BUILT_IN:
            raise ConfigError(message=f"{where}: servers.{name}: this name is the gateway's own")
        if bool(server.command) == bool(server.url):
            raise ConfigError(
                message=f"{where}: servers.{name}: give either command or url, not both or none"
            )
        if server.url and not server.url.startswith(("http://", "https://")):
            raise ConfigError(
                message=f"{where}: servers.{name}.url: must begin with http:// or https://"
            )
    for name, domain in settings.domains.items():
        for key, dress in domain.tools.items():
            _check_json(dress.fixed, f"{where}: domains.{name}.tools.{key}.fixed")
    if settings.default_model and settings.default_model not in settings.models:
        raise ConfigError(
            message=f"{where}: default_model: no model is named {settings.default_model}"
        )


def _check_front(gateway: GatewaySettings, where: str) -> None:
    """Refuse a host or an origin that no request could ever bring: it would look like a fault."""
    for host in gateway.allowed_hosts:
        if _HOST.fullmatch(host) is None:
            raise ConfigError(
                message=f"{where}: gateway.allowed_hosts: {host} is no host name; "
                "write it without scheme, port and path"
            )
    for origin in gateway.allowed_origins:
        if _ORIGIN.fullmatch(origin) is None:
            raise ConfigError(
                message=f"{where}: gateway.allowed_origins: {origin} is no origin; "
                "write scheme://host or scheme://host:port, without a path"
            )


def _check_json(value: JsonObject, where: str) -> None:
    try:
        canonical(value)
    except (TypeError, ValueError):
        raise ConfigError(
            message=f"{where}: holds what JSON cannot hold, such as nan or a date; write it as text"
        ) from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
