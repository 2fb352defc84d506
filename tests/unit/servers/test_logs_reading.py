"""Reading one file: whatever it holds, the reading ends well."""

import gzip
import os
import random
from pathlib import Path

import pytest

from thoughtgate_servers.logs.reading import LINE_CAP, Lines, opened


def read(path: Path, content: bytes, max_bytes: int = 10**9) -> tuple[list[str], Lines]:
    path.write_bytes(content)
    with opened(os.open(path, os.O_RDONLY), max_bytes=max_bytes) as lines:
        return list(lines), lines


def test_plain_and_gzip_read_the_same(tmp_path: Path) -> None:
    content = "一行\r\nsecond\n\nlast without end".encode()
    wanted = ["一行", "second", "", "last without end"]
    assert read(tmp_path / "a", content)[0] == wanted
    assert read(tmp_path / "b", gzip.compress(content))[0] == wanted
    halves = gzip.compress(content[:9]) + gzip.compress(content[9:])
    assert read(tmp_path / "c", halves)[0] == wanted


def test_broken_utf_8_is_replaced_and_counted(tmp_path: Path) -> None:
    lines, report = read(tmp_path / "a", b"ok\n\xff\xfe x\n" + "�已有\n".encode() + b"\xe4\xb8")
    assert lines == ["ok", "�� x", "�已有", "�"]
    assert (report.replaced, report.problem) == (3, "")


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    assert read(tmp_path / "a", b"\xef\xbb\xbfx\n")[0] == ["x"]


def test_a_cut_gzip_gives_its_whole_lines_and_a_problem(tmp_path: Path) -> None:
    rng = random.Random(1)
    content = b"".join(b"%d %d\n" % (n, rng.getrandbits(200)) for n in range(20_000))
    lines, report = read(tmp_path / "a", gzip.compress(content)[:200_000])
    assert 1_000 < len(lines) < 20_000
    assert [line.split()[0] for line in lines] == [str(n) for n in range(len(lines))]
    assert report.problem == "damaged gzip: the file ends too early"


@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b"garbage behind it"])
def test_a_damaged_gzip_is_a_problem_not_an_error(tmp_path: Path, damage: bytes) -> None:
    packed = bytearray(gzip.compress(b"x\n" * 9))
    content = b"\x1f\x8b\x08" + damage if damage != b"garbage behind it" else packed + damage
    _, report = read(tmp_path / "a", bytes(content))
    assert report.problem.startswith("damaged gzip")


def test_another_compression_is_named(tmp_path: Path) -> None:
    lines, report = read(tmp_path / "a", b"\xfd7zXZ\x00rest")
    assert lines == []
    assert report.problem == "compressed with xz, which is not read"


def test_an_endless_line_is_cut_and_the_next_one_read(tmp_path: Path) -> None:
    lines, report = read(tmp_path / "a", b"a" * (LINE_CAP * 3 + 5) + b"\nnext\n")
    assert [len(lines[0]), lines[1]] == [LINE_CAP, "next"]
    assert (report.cut, report.count) == (1, 2)


def test_a_bomb_is_read_to_the_limit_only(tmp_path: Path) -> None:
    _, report = read(tmp_path / "a", gzip.compress(b"0" * 79 * 10**5), max_bytes=100_000)
    assert report.problem == "too large: stopped at the limit of bytes to read"
    lines, report = read(tmp_path / "b", gzip.compress(b"x\n" * 10**6), max_bytes=1_000)
    assert len(lines) == 500
    assert report.problem


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    lines, report = read(tmp_path / "a", b"")
    assert (lines, report.problem) == ([], "")
