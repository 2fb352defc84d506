"""A plan through the client library: no model, every step validated, Thoughts shown as they come.

Never leaves anything behind: the gateway is ended, its folder is temporary.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from thoughtgate_client import Step, StepKind, ToolFailed, connect

CONFIG = """
[servers.logs]
command = {command}
trusted = true

[domains.ops]
include = ["logs/*"]
engine = "react"
"""

LOG = """\
2026-03-01 10:00:05,456 ERROR shop: connection refused by db
2026-03-01 10:00:07,456 INFO shop: another try
2026-03-01 10:01:05,456 ERROR shop: connection refused by db
"""

PLAN = {
    "steps": [
        {
            "id": "find",
            "goal": "find the log files",
            "tool": "logs__find_logs",
            "arguments": {"pattern": {"$from": "inputs#/pattern"}},
            "check": {
                "properties": {"structuredContent": {"properties": {"total": {"minimum": 1}}}}
            },
        },
        {
            "id": "count",
            "goal": "count the errors by type",
            "tool": "logs__count_errors",
            "arguments": {"by": "type", "paths": {"$from": "find#/structuredContent/paths"}},
        },
    ],
    "inputs": {"pattern": "*.log"},
    "answer": {"$from": "count#/structuredContent/total"},
}


@contextmanager
def gateway(folder: Path) -> Iterator[str]:
    """Run a gateway over the logs in `folder`; give the address of its default endpoint."""
    command = [sys.executable, "-m", "thoughtgate_servers.logs", "--root", str(folder)]
    config = folder / "thoughtgate.toml"
    config.write_text(CONFIG.format(command=json.dumps(command)), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "thoughtgate", "--config", str(config), "serve", "--port", "0"],
        env={**os.environ, "THOUGHTGATE_HOME": str(folder / "state")},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        heard = map(re.compile("listening on (.+)").match, process.stderr)
        yield next(match[1] for match in heard if match)
    finally:
        process.terminate()
        process.communicate(timeout=15)


async def main() -> None:
    """Run the plan, and a wrong one."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shop.log").write_text(LOG, encoding="utf-8")
        with gateway(folder) as url:
            async with connect(f"{url}/ops") as gate:
                seen: list[Step] = []

                def show(step: Step) -> None:
                    print(step.text)
                    seen.append(step)

                run = await gate.reason("How many errors are there?", plan=PLAN, on_step=show)
                print(run.status, run.answer)
                assert run.stop_reason == "final_answer", run
                assert run.answer == "2"
                kinds = [step.kind for step in seen]
                for kind in (StepKind.THOUGHT, StepKind.ACTION, StepKind.OBSERVATION):
                    assert kinds.count(kind) == 2, kind

                wrong = {**PLAN, "answer": {"$from": "counted#/total"}}
                refusal = ""
                try:
                    await gate.reason("How many errors are there?", plan=wrong)
                except ToolFailed as failed:
                    refusal = failed.message
                print(refusal)
                assert "reference to unknown step counted" in refusal


if __name__ == "__main__":
    asyncio.run(main())
