"""`python -m tests.chaos`: run chaos, check what happened, and print it on one screen.

Never hides a broken promise: the exit code is 1 as soon as there is one.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from benchmarks.report import positive
from tests.chaos import report
from tests.chaos.history import write
from tests.chaos.run import Wish, run

OUT = Path(__file__).with_name("out")


def main() -> int:
    """Read what is asked for, run it, and say how it went."""
    parser = argparse.ArgumentParser("make chaos", description="a gateway under random faults")
    parser.add_argument(
        "--seconds", type=positive, default=600, help="how long (600); starting and looking add 30"
    )
    parser.add_argument("--seed", type=int, default=1, help="other dice (1)")
    parser.add_argument("--workers", type=positive, default=1, help="of the gateway (1)")
    parser.add_argument("--page", action="store_true", help="put the last result into the docs")
    asked = parser.parse_args()
    if asked.page:
        report.render(OUT)
        return 0
    wish = Wish(seconds=asked.seconds, seed=asked.seed, workers=asked.workers)
    try:
        outcome = asyncio.run(run(wish))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; all that was started has ended\n")
        return 130
    found = report.judged(wish, outcome)
    OUT.mkdir(exist_ok=True)
    write(outcome.history, OUT / "history.jsonl")
    (OUT / "stderr.txt").write_text(outcome.words, encoding="utf-8")
    report.save(found, OUT)
    sys.stdout.write(report.screen(found))
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
