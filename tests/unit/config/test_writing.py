"""The first configuration: what is chosen is what our own loader reads, and comments are true."""

import itertools
import re

import pytest

from thoughtgate.config.files import parse
from thoughtgate.config.settings import Settings
from thoughtgate.config.writing import Choices, written

ODD = 'Notes "of" the \\ family: 家 \x7f\ttab'

CHOICES = [
    Choices(
        domain=domain,
        purpose=purpose,
        server="files" if command else "",
        command=command,
        capture=capture,
        traces=traces,
        port=port,
    )
    for domain, purpose, command, capture, traces, port in itertools.product(
        ("default", "notes"),
        ("", ODD),
        ((), ("thoughtgate-files", "--root", '/a "b"\\c')),
        (False, True),
        ("", "http://127.0.0.1:4318"),
        (None, 9000),
    )
]


def read(text: str) -> Settings:
    return parse(text, "gate.toml", {})


@pytest.mark.parametrize("choices", CHOICES)
def test_what_was_chosen_is_what_is_read(choices: Choices) -> None:
    found = read(written(choices))
    assert found.gateway.capture is choices.capture
    assert found.gateway.traces == choices.traces
    assert found.gateway.port == (choices.port or 8765)
    assert [one.command for one in found.servers.values()] == [choices.command] * bool(
        choices.command
    )
    shown = {name: domain.instructions for name, domain in found.domains.items()}
    plain = choices.domain == "default" and not choices.purpose
    assert shown == ({} if plain else {choices.domain: choices.purpose})


@pytest.mark.parametrize("command", [(), ("thoughtgate-files",)])
@pytest.mark.parametrize("domain", ["default", "notes"])
def test_every_default_that_is_shown_can_be_used(command: tuple[str, ...], domain: str) -> None:
    """Taking away the mark of a line must not make the file unusable."""
    text = written(Choices(domain=domain, server="files" if command else "", command=command))
    keys = [line for line in text.splitlines() if re.match(r"# [a-z_]+ = ", line)]
    assert len(keys) > 30
    for line in keys:
        if "url = " in line and 'url = ""' in line:
            continue
        in_example = text.index(line) > text.index("# [") if "# [" in text else False
        if not in_example:
            read(text.replace(line, line.removeprefix("# "), 1))
    if "# [" in text:
        marked = text[text.index("# [models") :]
        read(re.sub(r"^# (?=\[|[a-z_]+ = )", "", marked, flags=re.MULTILINE))


def test_every_key_has_a_line_of_why_before_it() -> None:
    lines = written(Choices(capture=True, port=1)).splitlines()
    for before, line in itertools.pairwise(lines):
        if re.match(r"(# )?[a-z_]+ = ", line):
            assert re.match(r"# [A-Z`]", before), line


def test_every_table_of_the_settings_stands_in_it() -> None:
    text = written(Choices())
    assert all(
        f"[{table}" in text for table in ("gateway", "limits", "servers.", "domains.", "models.")
    )
