"""The tool `reason` of a gateway that has only just started."""

import json
import os
import sys
from pathlib import Path

from tests.support.upstreams import PYTHON_PATH
from tests.support.waiting import within
from thoughtgate.app.compose import opened
from thoughtgate.app.requests import call_tool
from thoughtgate.config.files import Loaded, parse
from thoughtgate.core.calls import ToolName

CONFIG = f"""
[servers.peer]
command = [{json.dumps(sys.executable)}, "-m", "thoughtgate.testing.fake_server"]
env = {{ PYTHONPATH = {json.dumps(PYTHON_PATH)} }}
trusted = true
[servers.dead]
command = [{json.dumps(sys.executable)}, "-c", "raise SystemExit(1)"]
[domains.default]
engine = "react"
"""

PLAN = {"steps": [{"id": "say", "goal": "say it", "tool": "peer__echo", "arguments": {"n": 1}}]}


async def test_a_run_waits_for_servers_whose_tools_nobody_has_seen_yet(tmp_path: Path) -> None:
    loaded = Loaded(settings=parse(CONFIG, "test", {}), file=None, home=tmp_path)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    async with opened(loaded, environ) as app:
        assert set(app.keeper.unlisted()) == {"peer", "dead"}
        asked = call_tool(
            app.gateway,
            ToolName(domain="default", name="reason"),
            {"task": "say it", "plan": PLAN},
            seconds=20.0,
            say=lambda _: None,
        )
        result = json.loads((await within(asked, 20.0)).raw)
    assert result["structuredContent"]["status"] == "completed", result
