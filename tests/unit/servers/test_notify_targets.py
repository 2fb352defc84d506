"""Where messages may go."""

import pytest

from thoughtgate_servers.notify.targets import Targets, named, parsed
from thoughtgate_servers.table import ToolFailed

TARGETS = Targets(
    named={"slack": "https://hooks.slack.com/services/T0/B0/secret"},
    allowed=("http://127.0.0.1:9000/hooks", "https://example.org"),
)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9000/hooks",
        "http://127.0.0.1:9000/hooks/a?b=c",
        "https://example.org",
        "https://example.org/x",
        "https://example.org:443/x",
        "HTTPS://EXAMPLE.ORG/x",
    ],
)
def test_an_allowed_url_passes(url: str) -> None:
    assert TARGETS.by_url(url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9000/hooks-evil",
        "http://127.0.0.1:9000/",
        "http://127.0.0.1:9001/hooks",
        "https://127.0.0.1:9000/hooks",
        "http://127.0.0.1:9000/hooks/../admin",
        "http://127.0.0.1:9000/hooks/%2e%2e/admin",
        "http://127.0.0.1:9000/hooks/%252e%252e/admin",
        "http://127.0.0.1:9000/hooks/..\\admin",
        "http://127.0.0.1:9000/hooks/..%5cadmin",
        "https://example.org.evil.net/x",
        "https://evil.net/https://example.org",
        "https://example.org@evil.net/",
        "https://user:pass@example.org/",
        "https://example.org:444/",
        "https://exаmple.org/",
        "https://example.org\n.evil.net/",
        "https://example.org/#x",
        "file:///etc/passwd",
        "//example.org/x",
        "https://",
        "https://example.org:99999/",
        "http://[::1/",
    ],
)
def test_any_other_url_is_refused(url: str) -> None:
    with pytest.raises(ToolFailed):
        TARGETS.by_url(url)


def test_a_webhook_is_found_by_name_and_its_url_never_told() -> None:
    target = TARGETS.by_name("slack")
    assert target.url.endswith("secret")
    assert target.label == "slack"
    with pytest.raises(ToolFailed) as caught:
        TARGETS.by_name("team")
    assert "slack" in caught.value.message
    assert "secret" not in caught.value.message


def test_an_option_names_a_url_or_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "https://example.org/secret")
    assert named("a=https://example.org/?b=c") == ("a", "https://example.org/?b=c")
    assert named("a=env:HOOK") == ("a", "https://example.org/secret")
    for wrong in ("a", "=https://example.org", "a=", "a=env:NONE", "a=ftp://example.org"):
        with pytest.raises(ToolFailed):
            named(wrong)


def test_a_refused_url_is_not_repeated() -> None:
    with pytest.raises(ToolFailed) as caught:
        parsed("https://user:secret@example.org/")
    assert "secret" not in caught.value.message
