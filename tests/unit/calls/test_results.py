"""Results: relayed byte for byte, and held against what the tool declared."""

import pytest

from tests.unit.calls.conftest import WEATHER, Bench
from thoughtgate.core.calls import Result, Source
from thoughtgate.core.errors import InvalidResult, UpstreamReplied
from thoughtgate.core.servers import ResultPolicy
from thoughtgate.testing.sender import unknown_there

GOOD = b'{"content":[],"structuredContent":{"degrees":21.50},"x-own":{"b":1,"a":null}}'
BAD = b'{"content":[],"structuredContent":{"degrees":"warm"}}'
MISSING = b'{"content":[{"type":"text","text":"21.5"}]}'
NULL = b'{"content":[],"structuredContent":null}'
FAILED = b'{"content":[],"structuredContent":{"degrees":"broken"},"isError":true}'
ASKING = b'{"resultType":"input_required","requestState":"x"}'


@pytest.mark.parametrize("policy", list(ResultPolicy))
@pytest.mark.parametrize("raw", [GOOD, FAILED, ASKING])
async def test_what_is_no_invalid_answer_passes_untouched(
    bench: Bench, policy: ResultPolicy, raw: bytes
) -> None:
    bench.sender.otherwise = Result(raw=raw, is_error=raw is FAILED, final=raw is not ASKING)
    bench.offer("sky", WEATHER, results=policy)
    assert await bench.call("sky__weather") is bench.sender.otherwise


@pytest.mark.parametrize("raw", [BAD, MISSING, NULL])
@pytest.mark.parametrize(
    ("policy", "notes"), [(ResultPolicy.OFF, ()), (ResultPolicy.WARN, ("invalid_result",))]
)
async def test_an_answer_that_breaks_its_schema_passes_with_a_note_or_none(
    bench: Bench, policy: ResultPolicy, notes: tuple[str, ...], raw: bytes
) -> None:
    bench.sender.otherwise = Result(raw=raw)
    bench.offer("sky", WEATHER, results=policy)
    result = await bench.call("sky__weather")
    assert result.raw is raw
    assert result.notes == notes
    assert bench.audit.rows[0].notes == notes


@pytest.mark.parametrize("raw", [BAD, MISSING, NULL])
@pytest.mark.parametrize(
    ("policy", "source"),
    [
        (ResultPolicy.STRICT, Source.CLIENT),
        (ResultPolicy.WARN, Source.ENGINE),
        (ResultPolicy.OFF, Source.ENGINE),
    ],
)
async def test_strict_servers_and_engines_never_get_an_invalid_answer(
    bench: Bench, policy: ResultPolicy, source: Source, raw: bytes
) -> None:
    bench.sender.otherwise = Result(raw=raw)
    bench.offer("sky", WEATHER, results=policy)
    with pytest.raises(InvalidResult) as caught:
        await bench.call("sky__weather", source=source)
    assert caught.value.problems
    assert bench.audit.rows[0].outcome == "invalid_result"


async def test_a_tool_without_an_output_schema_may_answer_anything(bench: Bench) -> None:
    bench.sender.otherwise = Result(raw=BAD)
    bench.offer("sky", "weather", results=ResultPolicy.STRICT)
    assert await bench.call("sky__weather") is bench.sender.otherwise


async def test_an_error_of_the_server_comes_up_as_it_is(bench: Bench) -> None:
    bench.sender.otherwise = unknown_there("weather")
    bench.offer("sky", WEATHER)
    with pytest.raises(UpstreamReplied) as caught:
        await bench.call("sky__weather")
    assert caught.value is bench.sender.otherwise
