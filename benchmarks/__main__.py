"""`make bench`: one benchmark by name; the table of calls, beside its peers, when none is named.

Never knows what a benchmark measures: it only finds its module.

    python -m benchmarks [NAME] [--rounds N] [--quick] [--json] [--strict] …
"""

import sys
from importlib import import_module
from pathlib import Path

FIRST = "calls"
NAMES = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)


def main() -> int:
    """Run what is asked for and return its exit code."""
    named = len(sys.argv) > 1 and not sys.argv[1].startswith("-")
    name = sys.argv.pop(1) if named else FIRST
    if name not in NAMES:
        print(f"no benchmark {name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    code: int = import_module(f"benchmarks.bench_{name}").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
