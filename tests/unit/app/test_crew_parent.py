"""The parent goes on whatever becomes of a worker, or of its start."""

import subprocess
import sys
from pathlib import Path

GUARD = 30.0

PROGRAM = """
import os, signal, sys
from pathlib import Path
from thoughtgate.app.crew.parent import serve_crew
from thoughtgate.app.crew.hand import Hand
from thoughtgate.config.files import load

WORKER = "import os, sys; n = int(sys.argv[1]); os.write(n, b'or'); os.read(n, 1); os.read(n, 1)"
starts = 0

def start(index, line):
    global starts
    starts += 1
    if starts == 2:
        return ["/there/is/no/such/program"]
    if starts == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    return [sys.executable, "-c", WORKER, str(line)]

loaded = load(Path(sys.argv[1]), {"THOUGHTGATE_HOME": sys.argv[2]})
sys.exit(serve_crew(loaded, "1", (Hand(0, start),), print))
"""


def test_a_worker_that_cannot_be_started_is_started_again_later(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[gateway]\nport = 0\n", encoding="utf-8")
    argv = [sys.executable, "-c", PROGRAM, str(config), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.returncode == 0, done.stderr
    listening, ended, failed = done.stdout.splitlines()
    assert listening.startswith("listening on ")
    assert ended.endswith("has ended with code 0; it is started again in 0.1 s")
    assert failed == (
        "worker 0 cannot be started: no such file or directory; it is started again in 0.2 s"
    )
