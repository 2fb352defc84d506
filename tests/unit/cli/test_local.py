"""Commands that change the registry of this machine while others do, too."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from thoughtgate.cli.local import LocalDomains
from thoughtgate.surface.admin_values import DomainPut


@pytest.fixture
def domains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalDomains:
    monkeypatch.setenv("THOUGHTGATE_HOME", str(tmp_path))
    monkeypatch.delenv("THOUGHTGATE_CONFIG", raising=False)
    config = tmp_path / "gate.toml"
    config.touch()
    return LocalDomains(config)


def test_what_another_command_changes_meanwhile_is_kept(domains: LocalDomains) -> None:
    said = "what the other one says"
    others = iter([lambda now: replace(now, instructions=said)])

    def changing(rules: DomainPut) -> DomainPut:
        for other in others:
            domains.change("work", other)
        return replace(rules, include=("files/*",))

    domains.change("work", changing)
    rules = domains.shown("work")[0].rules
    assert (rules.instructions, rules.include) == (said, ("files/*",))
