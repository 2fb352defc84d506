"""The configuration file: what it may not say, variables that are not set, and who may read it.

Never shows a value of the file.
"""

import stat
from collections.abc import Iterable
from pathlib import Path

from thoughtgate.app.doctor.findings import Checked, Finding
from thoughtgate.config.faults import Fault
from thoughtgate.config.files import Surveyed
from thoughtgate.config.filling import variables
from thoughtgate.config.settings import Settings
from thoughtgate.telemetry.redact import is_secret_name, redact

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_configuration(surveyed: Surveyed) -> Checked:
    """Look at the configuration file, when there is one."""
    file = surveyed.loaded.file
    if file is None:
        return Checked(name="configuration", said="no file: the defaults are in force")
    findings = [judged_fault(fault, file) for fault in surveyed.faults]
    if holds_secrets(surveyed.loaded.written) and file.exists():
        findings += judged_mode(file, file.stat().st_mode)
    return Checked(name="configuration", said=str(file), findings=tuple(findings))


def judged_fault(fault: Fault, file: Path) -> Finding:
    """Return what a fault means to who runs a gateway."""
    where = f"{file}: {fault.key}" if fault.key else str(file)
    if fault.variable:
        return Finding(
            code="variable_unset",
            where=where,
            what=f"the variable {fault.variable} is not set",
            mend=f"export {fault.variable}=…, where the gateway is started, "
            f"or write ${{{fault.variable}:-default}}",
        )
    advice = f"edit {fault.key} in {file}, then: thoughtgate --config {file} config check"
    if not fault.key:
        advice = f"mend {file}, or write another one: thoughtgate init"
    return Finding(code="config_invalid", where=where, what=fault.text, mend=advice)


def judged_mode(file: Path, mode: int) -> Iterable[Finding]:
    """Return a finding when others may read a file with secrets."""
    if mode & _OTHERS:
        yield Finding(
            code="config_readable",
            where=str(file),
            what=f"it has mode {stat.S_IMODE(mode):04o} and holds secrets",
            mend=f"chmod 600 {file}, or name variables instead of values: ${{NAME}}",
        )


def holds_secrets(written: Settings) -> bool:
    """Say whether a file holds secrets themselves rather than names of variables."""
    for server in written.servers.values():
        named = {**server.env, **server.headers}
        if any(_is_secret(name, value) for name, value in named.items()):
            return True
        if any(redact(text) != text for text in (server.url, " ".join(server.command))):
            return True
    return any(_is_secret("api_key", model.api_key) for model in written.models.values())


def _is_secret(name: str, value: str) -> bool:
    if not value or variables(value):
        return False
    return is_secret_name(name) or redact(value) != value
