"""Configuration files: found, read, filled in and checked.

Never opens anything but the one file it is given.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import platformdirs

from thoughtgate.config import toml
from thoughtgate.config.agreement import agree
from thoughtgate.config.faults import Fault, Sieve
from thoughtgate.config.filling import FILES, Filler
from thoughtgate.config.grpc_servers import anchored
from thoughtgate.config.settings import Settings
from thoughtgate.config.texts import Unreadable, text_of
from thoughtgate.core.errors import ConfigError

CONFIG_VARIABLE = "THOUGHTGATE_CONFIG"
HOME_VARIABLE = "THOUGHTGATE_HOME"


class Loaded(msgspec.Struct, kw_only=True, frozen=True):
    """Settings with the place they came from: the file (None: defaults) and the state folder.

    `written` is what the file says, variables not filled in: what may be shown of it.
    """

    settings: Settings
    file: Path | None
    home: Path
    written: Settings = Settings()


class Surveyed(msgspec.Struct, kw_only=True, frozen=True):
    """What can be used of a configuration, and everything that is wrong with the rest."""

    loaded: Loaded
    faults: tuple[Fault, ...]


def load(file: Path | None, environ: Mapping[str, str]) -> Loaded:
    """Read the configuration file, or the defaults when there is none.

    `file` wins over `THOUGHTGATE_CONFIG`, which wins over `thoughtgate.toml` in the user's
    configuration folder. `THOUGHTGATE_HOME` moves the state folder.

    Raises:
        ConfigError: The file cannot be read or says something that is not allowed; all of it.
    """
    surveyed = survey(file, environ)
    _refuse(surveyed.faults, str(surveyed.loaded.file))
    return surveyed.loaded


def survey(file: Path | None, environ: Mapping[str, str]) -> Surveyed:
    """Read the same, and leave out what cannot be used instead of refusing all of it."""
    chosen = file or default_file(environ)
    home = state_folder(environ)
    if chosen is None:
        return Surveyed(loaded=Loaded(settings=Settings(), file=None, home=home), faults=())
    try:
        written, settings, faults = _sifted(_read(chosen), environ)
    except ConfigError as error:
        written, settings, faults = Settings(), Settings(), (Fault(key="", text=error.message),)
    settings = _anchored(settings, chosen.absolute().parent)
    loaded = Loaded(settings=settings, file=chosen, home=home, written=written)
    return Surveyed(loaded=loaded, faults=faults)


def parse(text: str, where: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings in a TOML text; `where` names it in errors.

    Raises:
        ConfigError: Not TOML, unknown or ill-typed keys, unset variables, or entries that
            contradict each other; all of it.
    """
    try:
        _, settings, faults = _sifted(text, environ)
    except ConfigError as error:
        settings, faults = Settings(), (Fault(key="", text=error.message),)
    _refuse(faults, where)
    return settings


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the registry and its keys."""
    return Path(environ.get(HOME_VARIABLE) or platformdirs.user_data_path("thoughtgate"))


def usual_file() -> Path:
    """Return where a configuration is looked for when nobody names one."""
    return platformdirs.user_config_path("thoughtgate") / "thoughtgate.toml"


def default_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file that is used when no option names one, None when there is none."""
    named = environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    usual = usual_file()
    return usual if usual.is_file() else None


def _refuse(faults: Sequence[Fault], where: str) -> None:
    if faults:
        said = [fault.said(where) for fault in faults]
        raise ConfigError(message="\n".join(said), data={"problems": said})


def _sifted(text: str, environ: Mapping[str, str]) -> tuple[Settings, Settings, tuple[Fault, ...]]:
    """Return the settings as written and filled in, without what the faults are about."""
    try:
        raw = toml.read(text)
    except Unreadable as error:
        raise ConfigError(message=str(error)) from None
    sieve = Sieve()
    written = msgspec.convert(sieve.usable(raw, Settings), Settings)
    filler = Filler(environ)
    settings = filler.filled(written)
    models = raw.get("models")
    agreed, disagreements = agree(settings, models if isinstance(models, dict) else ())
    return written, agreed, (*sieve.faults, *filler.faults, *disagreements)


def _anchored(settings: Settings, folder: Path) -> Settings:
    """Return the settings with the files that servers name found from the configuration's folder.

    Another current folder of a gateway shall not change what is read.
    """
    servers = {
        name: msgspec.structs.replace(
            given, **{key: anchored(getattr(given, key), folder) for key in FILES}
        )
        for name, given in settings.servers.items()
    }
    return msgspec.structs.replace(settings, servers=servers)


def _read(file: Path) -> str:
    try:
        return text_of(file)
    except FileNotFoundError:
        raise ConfigError(message="no such configuration file") from None
    except Unreadable as error:
        raise ConfigError(message=str(error)) from None
    except OSError as error:
        raise ConfigError(message=f"cannot be read: {error.strerror}") from None
