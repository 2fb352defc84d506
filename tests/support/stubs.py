"""The protocols' stubs: made from the `.proto` files under proto/, and held against them.

Never formats what was made: `python -m tests.support.stubs` (`make proto`) writes the same bytes
whenever it runs. With the word `baseline` it also takes the present protocols for those that no
later one may break; that is done with each release.
"""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from tests.support.peers import MODULES, NODE, PeersMissing, environment

PROTO = Path(__file__).parents[2] / "proto"
BASELINE = PROTO / "baseline.binpb"
BUF = MODULES / "@bufbuild" / "buf" / "bin" / "buf"
STUBS = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")

_WELL_KNOWN = Path(str(files("grpc_tools"))) / "_proto"
_BIN = Path(sys.executable).parent


def protocols() -> list[str]:
    """Return the `.proto` files, as paths below proto/."""
    return sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))


def stubs() -> list[Path]:
    """Return where the stubs of each protocol belong, as paths below proto/."""
    return [Path(name.removesuffix(".proto") + end) for name in protocols() for end in STUBS]


def generate(target: Path = PROTO) -> None:
    """Write the stubs of all protocols below a folder."""
    kinds = ("python", "grpc_python", "mypy", "mypy_grpc")
    plugins = [f"--plugin=protoc-gen-{kind}={_BIN / f'protoc-gen-{kind}'}" for kind in kinds[2:]]
    _protoc(*plugins, *(f"--{kind}_out={target}" for kind in kinds))


def describe(target: Path = BASELINE) -> None:
    """Write what the protocols say, without their comments, as one file of descriptors."""
    _protoc("--include_imports", f"--descriptor_set_out={target}")


def buf(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run buf in proto/ and return how it ended.

    Raises:
        PeersMissing: It is not installed.
    """
    if not BUF.exists():
        raise PeersMissing(BUF)
    return subprocess.run(
        [str(NODE), str(BUF), *arguments],
        cwd=PROTO,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def _protoc(*arguments: str) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"-I{_WELL_KNOWN}"]
    subprocess.run([*command, *arguments, *protocols()], cwd=PROTO, check=True)


if __name__ == "__main__":
    generate()
    if sys.argv[1:] == ["baseline"]:
        describe()
