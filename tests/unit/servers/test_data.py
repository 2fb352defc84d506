"""The data server: exact answers, bounded, read-only, and nothing outside the roots."""

import asyncio
import base64
import csv
import gzip
import json
import os
import sqlite3
import sys
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from jsonschema import Draft202012Validator

from tests.support.native_servers import asking, result, stub_of
from tests.support.tool_servers import ask, data, text
from tests.support.waiting import until, within
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_servers.data.limits import MAX_CELL, Limits, Watch, watched
from thoughtgate_servers.data.studying import correlations, percentile, study
from thoughtgate_servers.data.tools import DataTools
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Tool, ToolFailed

READ_ONLY = "only reading is allowed"
FOREVER = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT count(*) FROM r"
CROSS = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = -1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "Sälés 2026.csv").write_text(
        "day,region,amount,price\n2026-01-01,Nörd,3,1.10\n2026-01-02,Süd,5,2.20\n"
        "2026-01-03,Nörd,,0.30\n",
        encoding="utf-8",
    )
    with closing(sqlite3.connect(root / "shop.db")) as database:
        database.execute("CREATE TABLE items(id INTEGER, name TEXT, price REAL)")
        rows = [(number, f"n{number % 3}", number * 1.5) for number in range(500)]
        database.executemany("INSERT INTO items VALUES (?,?,?)", rows)
        database.execute('CREATE VIEW "odd ""one" AS SELECT * FROM items WHERE id % 2')
        database.commit()
    with duckdb.connect() as writer:
        target = root / "exact.parquet"
        writer.execute(
            "COPY (SELECT 12345678901234567.89::DECIMAL(19,2) AS d, 'nan'::DOUBLE AS n, "
            "18446744073709551615::UBIGINT AS h, DATE '2026-02-28' AS day, "
            f"[1, NULL] AS l, {{'a': 1}} AS s, '\\xFF'::BLOB AS b, NULL AS z) TO '{target}'"
        )
    (tmp_path / "secret.csv").write_text("secret\n1\n", encoding="utf-8")
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    return root


@pytest.fixture
def out(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


@pytest.fixture
def tools(folder: Path, out: Path) -> tuple[Tool, ...]:
    limits = Limits(seconds=20, memory_mb=128)
    return DataTools(sandbox=Sandbox([folder]), out=Sandbox([out]), limits=limits).table()


async def test_a_directory_is_described_table_by_table(tools: tuple[Tool, ...]) -> None:
    found = data(await ask(tools, "describe", source="."))
    assert found["dialect"] == "DuckDB"
    sales, exact = found["tables"]
    assert (exact["name"], sales["name"]) == ("exact", "Sälés 2026")
    assert sales["rows"] == 3
    assert sales["columns"][0] == {"name": "day", "type": "DATE"}
    assert sales["samples"][0] == ["2026-01-01", "Nörd", 3, 1.1]


async def test_a_database_is_described_with_its_views(tools: tuple[Tool, ...]) -> None:
    found = data(await ask(tools, "describe", source="shop.db", samples=1))
    assert found["dialect"] == "SQLite"
    assert [(t["name"], t["rows"]) for t in found["tables"]] == [("items", 500), ('odd "one', 250)]
    assert found["tables"][0]["samples"] == [[0, "n0", 0.0]]


async def test_a_broken_file_is_told_of_and_the_others_are_read(
    folder: Path, tools: tuple[Tool, ...]
) -> None:
    (folder / "broken.parquet").write_bytes(b"PAR1 no")
    (folder / "exact.csv").write_text("a\n1\n", encoding="utf-8")
    found = {t["name"]: t for t in data(await ask(tools, "describe", source="."))["tables"]}
    assert set(found) == {"broken", "exact", "exact_2", "Sälés 2026"}
    assert found["broken"]["problem"]
    assert "/fd/" not in found["broken"]["problem"]
    said = await ask(tools, "query", source=".", sql="SELECT * FROM broken")
    assert said.is_error


async def test_odd_files_are_tables_or_say_why_not(folder: Path, tools: tuple[Tool, ...]) -> None:
    written = {
        "latin.csv": b"a,b\n\xe4,1\n",
        "nul.csv": b"a,b\nx\0y,1\n",
        "twice.csv": b"a,a\n1,2\n",
        "packed.csv.gz": gzip.compress(b"x\n1\n"),
        "torn.csv.gz": gzip.compress(b"x\n1\n" * 999)[:40],
        'it\'s "it".csv': b"a\n1\n",
        "long.csv": b"a\n" + b"x" * 5_000_000 + b"\n",
    }
    for name, content in written.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe.csv")
    found = {t["name"]: t for t in data(await ask(tools, "describe", source="."))["tables"]}
    assert "not utf-8" in found["latin"]["problem"]
    assert found["torn"]["problem"].startswith("torn cannot be read: IO Error")
    assert found["nul"]["samples"] == [["x\0y", 1]]
    assert [column["name"] for column in found["twice"]["columns"]] == ["a", "a_1"]
    assert (found["packed"]["rows"], found['it\'s "it"']["rows"], found["long"]["rows"]) == (
        1,
        1,
        1,
    )
    assert "pipe" not in found


async def test_full_text_search_and_json_are_reading(folder: Path, tools: tuple[Tool, ...]) -> None:
    with closing(sqlite3.connect(folder / "more.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE VIRTUAL TABLE docs USING fts5(body)")
        database.execute("INSERT INTO docs VALUES ('hello world')")
        database.commit()
        for sql, row in (
            ("SELECT body FROM docs WHERE docs MATCH 'hello'", ["hello world"]),
            ("SELECT sum(value) FROM json_each('[1, 2]')", [3]),
        ):
            assert data(await ask(tools, "query", source="more.db", sql=sql))["rows"] == [row]
        sql = "INSERT INTO docs VALUES ('x')"
        assert READ_ONLY in text(await ask(tools, "query", source="more.db", sql=sql))


async def test_values_are_exact(tools: tuple[Tool, ...]) -> None:
    found = data(await ask(tools, "query", source="exact.parquet", sql="FROM exact"))
    assert found["rows"] == [[
        "12345678901234567.89", "NaN", "18446744073709551615", "2026-02-28",
        [1, None], {"a": 1}, "/w==", None,
    ]]  # fmt: skip
    sql = "SELECT 9007199254740993, 9007199254740991, 1e999, 'a' || char(0) || 'ü', x'00ff', NULL"
    found = data(await ask(tools, "query", source="shop.db", sql=sql))
    assert found["rows"] == [
        ["9007199254740993", 9007199254740991, "Infinity", "a\0ü", "AP8=", None]
    ]


async def test_csv_columns_as_text_can_be_cast_exactly(tools: tuple[Tool, ...]) -> None:
    sql = 'SELECT sum(price::DECIMAL(10,2)) AS total FROM "Sälés 2026"'
    found = data(await ask(tools, "query", source="Sälés 2026.csv", sql=sql, as_text=True))
    assert found["rows"] == [["3.60"]]


async def test_an_answer_is_bounded_in_rows_in_bytes_and_in_cells(tools: tuple[Tool, ...]) -> None:
    every = "SELECT * FROM items"
    few = data(await ask(tools, "query", source="shop.db", sql=every, max_rows=7))
    assert (few["row_count"], few["complete"]) == (7, False)
    all_ = data(
        await ask(tools, "query", source="shop.db", sql="SELECT * FROM items", max_rows=500)
    )
    assert (all_["row_count"], all_["complete"]) == (500, True)
    long = "SELECT repeat('ü', 100000) FROM range(1000)"
    wide = data(await ask(tools, "query", source=".", sql=long, max_rows=1000))
    assert 50 < wide["row_count"] < 1000
    assert not wide["complete"]
    assert {len(row[0]) for row in wide["rows"]} == {MAX_CELL + 1}


@pytest.mark.parametrize(
    ("source", "sql", "said"),
    [
        ("shop.db", "SELECT * FROM itmes", "did you mean items?"),
        ("shop.db", "SELECT nmae FROM items", "did you mean name?"),
        ("shop.db", "DELETE FROM items", READ_ONLY),
        ("shop.db", "ATTACH '/tmp/x.db' AS x", READ_ONLY),
        ("shop.db", "PRAGMA journal_mode=DELETE", READ_ONLY),
        ("shop.db", "SELECT * FROM pragma_database_list", READ_ONLY),
        ("shop.db", "SELECT load_extension('x')", READ_ONLY),
        ("shop.db", "VACUUM INTO '/tmp/x.db'", READ_ONLY),
        ("shop.db", "BEGIN", READ_ONLY),
        ("shop.db", "SELECT 1; SELECT 2", "one statement"),
        ("shop.db", "-- nothing", "statements that give rows"),
        ("shop.db", "SELECT \0", "null character"),
        ("shop.db", "SELECT zeroblob(100000000)", "too big"),
        (".", 'SELECT * FROM "Salés 2026"', "did you mean Sälés 2026?"),
        (".", 'SELECT regoin FROM "Sälés 2026"', "did you mean region?"),
        (".", "ATTACH '/tmp/x.db'", READ_ONLY),
        (".", "COPY exact TO '/tmp/x.csv'", READ_ONLY),
        (".", "CREATE TABLE x AS SELECT 1", READ_ONLY),
        (".", "SET memory_limit='9GB'", READ_ONLY),
        (".", "PRAGMA database_list", READ_ONLY),
        (".", "INSTALL httpfs", READ_ONLY),
        (".", "CALL pragma_version()", READ_ONLY),
        (".", "SELECT 1; SELECT 2", READ_ONLY),
        (".", "SELECT * FROM read_csv('http://127.0.0.1:1/x')", "no other file"),
        (".", "SELECT * FROM read_text('/etc/passwd')", "no other file"),
        (".", "SELECT * FROM glob('/etc/*')", "no other file"),
        (".", "SELECT * FROM read_csv('/proc/self/fd/0')", "no other file"),
        (".", "SELECT * FROM '/etc/passwd'", "no such table"),
        (".", "SELECT * FROM tools", "no such table"),
        (".", "SELECT list(range) FROM range(1000000000)", "memory"),
        (".", "SELECT INTERVAL 2000000000 DAY", "cast it to text"),
        ("link.csv", "SELECT 1", "outside"),
        ("../secret.csv", "SELECT 1", "not allowed"),
        ("/etc/passwd", "SELECT 1", "outside"),
        ("nothing.csv", "SELECT 1", "no such file"),
        ("a\0.csv", "SELECT 1", "NUL"),
    ],
)
async def test_what_is_not_reading_these_tables_is_refused_in_words(
    tools: tuple[Tool, ...], source: str, sql: str, said: str
) -> None:
    refused = await ask(tools, "query", source=source, sql=sql)
    assert refused.is_error
    assert said in text(refused)
    assert "/fd/" not in text(refused)


async def test_files_that_are_no_data_are_told_apart(folder: Path, tools: tuple[Tool, ...]) -> None:
    (folder / "a.txt").write_text("x", encoding="utf-8")
    (folder / "torn.db").write_bytes(b"SQLite format 3\0" + b"x" * 500)
    (folder / "empty").mkdir()
    for source, said in (("a.txt", "ends in none"), ("torn.db", "database"), ("empty", "no CSV")):
        refused = await ask(tools, "describe", source=source)
        assert refused.is_error
        assert said in text(refused)


@pytest.mark.parametrize(("source", "sql"), [("shop.db", FOREVER), (".", CROSS)])
async def test_a_statement_ends_when_its_time_is_over_or_its_caller_leaves(
    folder: Path, source: str, sql: str
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    sandbox = Sandbox([folder])
    short = DataTools(sandbox=sandbox, out=None, limits=Limits(seconds=0.2)).table()
    refused = await ask(short, "query", source=source, sql=sql)
    assert "stopped after 0.2 seconds" in text(refused)
    async with stub_of(DataTools(sandbox=sandbox, out=None, limits=Limits()).table()) as stub:
        call = stub.CallTool(asking("query", {"source": source, "sql": sql}, want_progress=True))
        assert isinstance(first := await within(call.read()), pb.CallToolResponse)
        assert first.HasField("progress")
        call.cancel()
        # over when its files are closed: the server's own socket and the client's remain
        small = asking("query", {"source": source, "sql": "SELECT 1"})
        assert not (await result(stub, small)).is_error
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before + 8)


async def test_work_is_stopped_even_when_an_interrupt_is_lost() -> None:
    interrupts: list[bool] = []

    def work(watch: Watch) -> None:
        watch.interrupts(lambda: interrupts.append(True))
        while len(interrupts) < 3:
            pass
        watch.check()

    async def progress(*_: object) -> None:
        """Tell nobody."""

    with pytest.raises(ToolFailed):
        await within(watched(work, 0.01, progress))
    task = asyncio.ensure_future(watched(work, 9, progress))
    await asyncio.sleep(0)
    interrupts.clear()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert len(interrupts) >= 3


def test_statistics_are_those_of_the_textbook() -> None:
    found = study("a", [2, 4, 4, 4, 5, 5, 7, 9, None, float("nan")])
    assert (found["count"], found["nulls"], found["not_finite"]) == (9, 1, 1)
    assert (found["mean"], round(found["stddev"], 4)) == (5.0, 2.1381)
    assert (found["min"], found["max"]) == (2, 9)
    assert found["percentiles"]["p50"] == 4.5
    assert percentile([1.0, 2.0], 0.25) == 1.25
    [related] = correlations([("a", [1, 2, 3, None]), ("b", [2, 4, 6, 1]), ("c", [1, 1, 1, 1])])
    assert (related["a"], related["b"], round(related["r"], 9), related["rows"]) == ("a", "b", 1, 3)
    for odd in ([], [None], [10**400], [1e308] * 9, [float("inf")], ["a", 1, b"x"], [True, False]):
        json.dumps(study("x", odd), allow_nan=False)


async def test_statistics_of_a_table_obey_their_schema(tools: tuple[Tool, ...]) -> None:
    found = data(await ask(tools, "statistics", source="shop.db", table="items"))
    assert (found["rows"], found["complete"]) == (500, True)
    [related] = found["correlation"]
    assert (related["a"], related["b"], round(related["r"], 9)) == ("id", "price", 1.0)
    name = found["columns"][1]
    assert name["frequent"][0] == {"value": "n0", "count": 167}
    exact = data(await ask(tools, "statistics", source="exact.parquet", sql="FROM exact"))
    assert exact["columns"][0]["min"] == "12345678901234567.89"
    [schema] = [tool.output_schema for tool in tools if tool.name == "statistics"]
    assert schema is not None
    for one in (found, exact):
        Draft202012Validator(schema).validate(one)
    assert (await ask(tools, "statistics", source="shop.db")).is_error


async def test_statistics_in_words_have_a_mean_where_there_is_one(tools: tuple[Tool, ...]) -> None:
    sql = "SELECT 'a' AS word, 3 AS number, NULL AS empty"
    said = text(await ask(tools, "statistics", source="shop.db", sql=sql))
    assert said.splitlines() == [
        "1 rows",
        "word: 1 values, 0 null, from a to a",
        "number: 1 values, 0 null, mean 3, from 3 to 3",
        "empty: 0 values, 1 null",
    ]


@pytest.mark.parametrize("kind", ["bar", "line", "scatter", "histogram"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, price FROM items LIMIT 30",
        "SELECT 1.0, 5",
        "SELECT 1, -1.7e308 UNION ALL SELECT 2, 1.7e308",
        "SELECT 1, 1e-320 UNION ALL SELECT 2, 2e-320",
        "SELECT 1, NULL UNION ALL SELECT 2, -7 UNION ALL SELECT NULL, 9e99",
    ],
)
async def test_a_chart_is_a_well_formed_picture(
    tools: tuple[Tool, ...], kind: str, sql: str
) -> None:
    title = '<b>&"ü\n\x00\ud7ff'
    done = await ask(tools, "chart", source="shop.db", sql=sql, kind=kind, title=title)
    assert not done.is_error, text(done)
    async with stub_of(tools) as stub:
        asked = {"source": "shop.db", "sql": sql, "kind": kind, "title": title}
        sent = await result(stub, asking("chart", asked))
    picture = json.loads(sent.content_json)[1]
    assert picture["mimeType"] == "image/svg+xml"
    shown = done.content[1].model_dump()["data"]
    assert shown == picture["data"]
    root = ET.fromstring(base64.b64decode(shown))
    places = [
        float(value)
        for element in root.iter()
        for key in ("x", "y", "cx", "cy", "height", "width")
        if (value := element.get(key)) is not None
    ]
    assert all(-1 <= place <= 821 for place in places)


async def test_a_chart_names_the_columns_that_it_can_draw(tools: tuple[Tool, ...]) -> None:
    sql = "SELECT id, price FROM items"
    asked: dict[str, Any] = {"source": "shop.db", "sql": sql, "kind": "line"}
    assert "did you mean price?" in text(await ask(tools, "chart", **asked, y=["prize"]))
    words = {**asked, "sql": "SELECT name FROM items"}
    assert "no numeric column" in text(await ask(tools, "chart", **words))
    wordy = {**asked, "kind": "scatter", "sql": "SELECT name, price FROM items"}
    assert "needs numbers in name" in text(await ask(tools, "chart", **wordy))


async def test_exports_hold_what_was_asked_and_replace_nothing(
    out: Path, folder: Path, tools: tuple[Tool, ...]
) -> None:
    asked: dict[str, Any] = {"source": "Sälés 2026.csv", "name": "e"}
    sql = 'SELECT region, amount FROM "Sälés 2026" -- all'
    for kind in ("csv", "json", "parquet"):
        done = data(await ask(tools, "export", **asked, sql=sql, format=kind))
        again = data(await ask(tools, "export", **asked, sql=sql, format=kind))
        assert (done["rows"], done["file"]["outcome"]) == (3, "created")
        assert again["file"]["outcome"] == "unchanged"
        other = await ask(tools, "export", **asked, sql="SELECT 1", format=kind)
        assert "exists with other content" in text(other)
    with (out / "e.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1:] == [["Nörd", "3"], ["Süd", "5"], ["Nörd", ""]]
    assert json.loads((out / "e.json").read_bytes())[2] == {"region": "Nörd", "amount": None}
    assert duckdb.read_parquet(str(out / "e.parquet")).fetchall()[1] == ("Süd", 5)
    assert sorted(os.listdir(out)) == ["e.csv", "e.json", "e.parquet"]
    assert len(os.listdir(folder)) == 4


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"format": "parquet"}, "CSV and Parquet sources only"),
        ({"name": "../x"}, "must match"),
        ({"sql": "SELECT 1 AS a, 2 AS a", "format": "json"}, "AS"),
        ({"sql": "SELECT 1) TO '/tmp/x' (FORMAT csv) --", "source": "."}, "syntax error"),
    ],
)
async def test_an_export_that_cannot_be_is_refused(
    out: Path, tools: tuple[Tool, ...], more: dict[str, str], said: str
) -> None:
    given = {"source": "shop.db", "sql": "SELECT 1", "name": "e", "format": "csv"}
    asked: dict[str, Any] = {**given, **more}
    refused = await ask(tools, "export", **asked)
    assert refused.is_error
    assert said in text(refused)
    assert os.listdir(out) == []


async def test_the_same_export_sent_again_is_answered_from_memory(
    out: Path, tools: tuple[Tool, ...]
) -> None:
    asked = {"source": "shop.db", "sql": "SELECT 1", "name": "e", "format": "csv"}
    async with stub_of(tools) as stub:
        first = await result(stub, asking("export", asked, call_id="c"))
        (out / "e.csv").unlink()
        again = await result(stub, asking("export", asked, call_id="c"))
    assert first == again
    assert os.listdir(out) == []


async def test_without_a_place_to_write_nothing_offers_to(folder: Path) -> None:
    tools = DataTools(sandbox=Sandbox([folder]), out=None, limits=Limits()).table()
    assert [tool.name for tool in tools] == ["query", "describe", "statistics", "chart"]
    assert "name" not in tools[-1].input_schema["properties"]


async def test_without_duckdb_databases_are_read_and_files_say_what_to_install(
    tools: tuple[Tool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for name in ("duckdb_engine", "parquet"):
        monkeypatch.delitem(sys.modules, f"thoughtgate_servers.data.{name}", raising=False)
    asked: dict[str, Any] = {"source": "shop.db", "sql": "SELECT 1", "name": "e", "format": "csv"}
    assert data(await ask(tools, "export", **asked))["rows"] == 1
    for more in ({"source": "exact.parquet"}, {"source": ".", "format": "parquet"}):
        refused = await ask(tools, "export", **{**asked, **more})
        assert "pip install 'thoughtgate[data]'" in text(refused)
