"""What is hidden before a span leaves, and what is not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.telemetry import names
from thoughtgate.telemetry.redact import HIDDEN, is_secret_name, redact

SECRET = "hunter2-correct-horse"


@pytest.mark.parametrize(
    "name",
    [
        "authorization", "http.request.header.authorization", "Proxy-Authorization", "password",
        "db.password", "DB_PASSWORD", "client_secret", "clientSecret", "access_token",
        "accessToken",
        "X-API-Key", "api key", "apiKey", "openai.api_key", "OPENAI_API_KEY", "set-cookie",
        "credentials", "private_key", "awsSecretAccessKey",
    ],
)  # fmt: skip
def test_a_name_that_means_a_secret_is_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["gen_ai.usage.input_tokens", "max_tokens", "tokenizer", "author", "monkey", "key", "keyboard",
     "thoughtgate.tool.digest", "secretary", "passenger"],
)  # fmt: skip
def test_a_name_that_only_looks_like_a_secret_is_left_alone(name: str) -> None:
    assert not is_secret_name(name)


def test_no_name_of_ours_is_taken_for_a_secret() -> None:
    ours = [value for value in vars(names).values() if isinstance(value, str) and "." in value]
    assert len(ours) > 60
    assert [name for name in ours if is_secret_name(name)] == []


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"password": SECRET}),
        json.dumps({"a": [{"headers": {"Authorization": f"Bearer {SECRET}"}}]}),
        json.dumps({"secret": {"nested": [SECRET]}}),
        json.dumps({"body": json.dumps({"api_key": SECRET})}),
        json.dumps({"url": f"https://user:{SECRET}@example.org/x"}),
        json.dumps({"note": f"use token={SECRET} please"}),
        json.dumps({"password": f'with "quotes" and {SECRET}'}) + "…",
        '{"password": "' + SECRET,
        '{"outer": "{\\"password\\": \\"' + SECRET + '\\", \\"x\\": 1}"',
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}",
        f"connect failed: postgres://app:{SECRET}@db/main",
        f"password={SECRET}",
        f"db_password: {SECRET}",
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(text: str) -> None:
    clean = redact(text)
    assert SECRET not in clean
    assert HIDDEN in clean


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_" + "a1" * 18,
        "xoxb-" + "1" * 12,
        "AKIA" + "ABCDEFGH12345678",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
    ],
)
def test_a_key_of_a_known_shape_is_hidden_without_a_name(secret: str) -> None:
    assert secret not in redact(f"the call failed with {secret} in it")


@pytest.mark.parametrize(
    "text",
    [
        "plain words about a tokenizer and its keys",
        '{"path": "/var/log/auth.log", "days": 90}',
        '{"input_tokens": 12, "key": "value"}',
        '{"author" : 3.0}',
        "the bearer of this letter",
        "basic understanding of 中文 and tokens",
    ],
)
def test_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


@given(st.text(max_size=300))
def test_any_text_can_be_looked_at(text: str) -> None:
    assert isinstance(redact(text), str)


@pytest.mark.parametrize(
    "text", ["[" * 50_000 + '"token"', '"token' * 20_000, '\\"' * 50_000 + "key"]
)
def test_hostile_text_is_looked_at_in_bounded_time(text: str) -> None:
    """A quadratic pattern would run into the test's time limit here."""
    assert isinstance(redact(text), str)
