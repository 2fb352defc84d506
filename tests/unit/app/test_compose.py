"""What the settings become: the path of a call as the composed gateway has it."""

from pathlib import Path

import pytest

from tests.support.waiting import within
from thoughtgate.app.compose import opened
from thoughtgate.config.files import load


async def stages(home: Path, gateway: str) -> list[str]:
    """Return the stages that a call of the built-in tool takes."""
    config = home / "gate.toml"
    config.write_text(f'{gateway}\n[domains.default]\nengine = "react"\n', encoding="utf-8")
    async with opened(load(config, {"THOUGHTGATE_HOME": str(home / "state")}), {}) as app:
        return [name for name, _ in app.gateway.explain("default", "reason")]


@pytest.mark.parametrize(("audit", "intended"), [("best-effort", False), ("required", True)])
async def test_a_required_audit_log_makes_intents_durable(
    tmp_path: Path, audit: str, intended: bool
) -> None:
    listed = await within(stages(tmp_path, f'[gateway]\naudit = "{audit}"'))
    assert ("intended" in listed) is intended
