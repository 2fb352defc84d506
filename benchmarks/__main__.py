"""`make bench`: one benchmark by name; the table of calls, beside its peers, when none is named.

Never knows what a benchmark measures: it only finds its module.

    python -m benchmarks [NAME|all] [--rounds N] [--quick] [--json] [--strict] …
"""

import sys
from importlib import import_module
from pathlib import Path

from benchmarks.peers import PeerMissing

FIRST, ALL = "calls", "all"
FOLDER = Path(__file__).parent
NAMES = sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def main() -> int:
    """Run what is asked for and return its exit code, the worst of several."""
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(f"{__doc__}\nNAME: {', '.join(NAMES)}; NAME --help shows what one of them takes.")
        return 0
    named = len(sys.argv) > 1 and not sys.argv[1].startswith("-")
    name = sys.argv.pop(1) if named else FIRST
    if name not in {*NAMES, ALL}:
        print(f"no benchmark {name!r}; there are {', '.join(NAMES)}, and all", file=sys.stderr)
        return 2
    try:
        return max(map(_run, NAMES if name == ALL else [name]))
    except PeerMissing as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; all that was started has ended", file=sys.stderr)
        return 130


def _run(name: str) -> int:
    print(f"== {name}", file=sys.stderr)
    sys.argv[0] = f"python -m benchmarks {name}"
    code: int = import_module(f"benchmarks.bench_{name}").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
