"""What a check can find: the table of findings, and one finding with the words for it.

Never looks at anything; why a finding matters is said here, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from thoughtgate.core.json import JsonObject


class Severity(StrEnum):
    """How bad a finding is: a warning lets the gateway do its work, a problem does not."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


WARNING, PROBLEM = Severity.WARNING, Severity.PROBLEM

KINDS: Mapping[str, tuple[Severity, str]] = {
    "config_invalid": (PROBLEM, "a gateway does not start with it"),
    "variable_unset": (PROBLEM, "a gateway does not start without it"),
    "config_readable": (
        WARNING,
        "the file holds secrets, and every user of this machine sees them",
    ),
    "command_missing": (PROBLEM, "the server cannot be started"),
    "launcher_missing": (PROBLEM, "the server is started by a program that is not installed"),
    "command_not_executable": (PROBLEM, "the server cannot be started"),
    "interpreter_missing": (PROBLEM, "the program that shall run the command is not there"),
    "wrong_architecture": (PROBLEM, "the command was built for another kind of machine"),
    "folder_missing": (PROBLEM, "the server is started in this folder"),
    "url_unresolved": (PROBLEM, "nothing can be sent to a host without an address"),
    "url_refused": (PROBLEM, "nobody listens there"),
    "url_tls": (PROBLEM, "no call may go over a connection that cannot be trusted"),
    "url_timeout": (PROBLEM, "every call would wait in vain"),
    "url_protocol": (PROBLEM, "what answers there speaks something else than the URL says"),
    "tls_file": (PROBLEM, "no connection can be made without this file"),
    "nothing_offered": (PROBLEM, "no tool can be made of what the server offers"),
    "url_not_found": (PROBLEM, "the host answers, but not at this path"),
    "login_needed": (PROBLEM, "the server refuses the credentials that it is sent"),
    "login_expired": (PROBLEM, "the server takes no calls until somebody logs in again"),
    "prints_to_stdout": (WARNING, "standard output belongs to the protocol; clients may give up"),
    "server_ends": (PROBLEM, "the server ended before it offered a tool"),
    "server_silent": (PROBLEM, "the server runs, but does not answer"),
    "server_failed": (PROBLEM, "no tool of the server can be offered"),
    "tool_quarantined": (WARNING, "no client sees the tool"),
    "name_too_long": (WARNING, "the client may refuse or drop the tool"),
    "names_collide": (WARNING, "clients would not reach the tool that they mean"),
    "store_newer": (PROBLEM, "this release cannot read it, and leaves it alone"),
    "store_older": (WARNING, "it is upgraded when a command opens it next; a copy is kept"),
    "store_locked": (PROBLEM, "no call can be written down, and nothing be changed"),
    "store_corrupt": (PROBLEM, "servers, domains and the audit log cannot be read"),
    "store_sealed": (PROBLEM, "servers with secrets cannot be used"),
    "store_error": (PROBLEM, "the registry cannot be used"),
    "store_on_network": (WARNING, "network file systems do not keep the promises about locks"),
    "store_mode": (WARNING, "other users may read servers, calls and encrypted secrets"),
    "disk_full": (PROBLEM, "nothing can be written down any more"),
    "disk_low": (WARNING, "soon nothing can be written down any more"),
    "disk_readonly": (PROBLEM, "nothing can be written down"),
    "clock_off": (WARNING, "logins and certificates fail, and traces of two machines do not fit"),
    "clock_behind_files": (WARNING, "files come from the future: audit rows would be out of order"),
    "clock_jumped": (WARNING, "the clock is being set; times of calls cannot be compared"),
    "exporter_down": (PROBLEM, "traces are lost while nobody takes them"),
    "exporter_refuses": (PROBLEM, "traces are lost"),
    "exporter_value": (WARNING, "the value is ignored, and the usual one taken"),
    "port_in_use": (PROBLEM, "a gateway cannot listen there"),
    "versions_old": (PROBLEM, "the gateway needs a newer one"),
    "check_unfinished": (PROBLEM, "what cannot be looked at does not work for calls either"),
}
"""Each finding by its stable name: how bad it is, and why it matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it should be.

    `where` names the thing, `what` says what is wrong, `mend` is the exact command or edit.
    """

    code: str
    where: str
    what: str
    mend: str

    @property
    def severity(self) -> Severity:
        """Return how bad it is."""
        return KINDS[self.code][0]

    @property
    def why(self) -> str:
        """Return why it matters."""
        return KINDS[self.code][1]

    def as_json(self) -> JsonObject:
        """Return the finding as JSON."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "where": self.where,
            "what": self.what,
            "why": self.why,
            "mend": self.mend,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One thing that was looked at: what it is, what was seen, and what was found."""

    name: str
    said: str
    findings: tuple[Finding, ...] = ()

    @property
    def severity(self) -> Severity:
        """Return how bad the worst finding is."""
        found = {finding.severity for finding in self.findings}
        return next((one for one in (PROBLEM, WARNING) if one in found), Severity.OK)

    def as_json(self) -> JsonObject:
        """Return what was looked at as JSON."""
        return {
            "name": self.name,
            "state": self.severity.value,
            "said": self.said,
            "findings": [finding.as_json() for finding in self.findings],
        }
