"""Secrets never leave: which names and which text are secrets, and a copy without them."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.files import redaction
from ragauge.files.redaction import (
    REDACTED,
    SecretValues,
    is_free_of_keys,
    is_secret,
    redacted,
    redacted_url,
    secret_parts,
    words_of,
)
from tests.support.cases import cases

SECRET = [
    "password", "passwd", "secret", "token", "api_key", "apikey", "access_key", "private_key",
    "authorization", "credential", "cookie", "client_secret", "credentials", "cookies",
    "Set-Cookie", "openai_api_key", "OPENAI_API_KEY", "openaiApiKey", "openaiAPIKey", "X-Api-Key",
    "api-key", "API KEY", "apiKeys", "OPENAIAPIKEY", "aws_secret_access_key", "AWS_ACCESS_KEY_ID",
    "ssh_private_key", "PGPASSWORD", "db.password", "dbPassword", "passphrase", "accessToken",
    "hf_token", "HF_TOKEN", "githubToken", "GITHUBTOKEN", "auth_tokens", "refreshTokens",
    "api_key_2", "apikey1", "oauth2_token", "token_secret", "clientsecret", "JWT_SECRET", "secrets",
    "secret_key", "proxy-authorization", "Authorization", "azureSubscriptionKey", "tokenValue",
    "next_page_token", "TOKENVALUE", "tokenvalue",
]  # fmt: skip
HARMLESS = [
    "max_tokens", "token_count", "tokens", "tokenizer", "token_limit", "prompt_tokens", "keyword",
    "primary_key", "key", "keys", "maxTokens", "tokenCount", "MAX_TOKENS", "TOKENCOUNT", "keywords",
    "completionTokens", "total_tokens", "target_tokens", "tokenizer_name", "token_overlap",
    "eos_token", "pad_token", "eosToken", "refusal_token", "cost_per_token", "costPerToken",
    "time_to_first_token", "tokenization", "secretary", "api_keyword", "public_key", "author",
    "pass", "passage", "passages", "monkey", "k", "", "_", "chunk_size", "sort_key", "privacy",
    "access", "api_base", "session", "λ", "question", "PADTOKENVALUE",
]  # fmt: skip
KEYS = [
    "sk-abc123def456", "sk-proj-Abcd_1234-efgh5678", "sk-ant-api03-abcdefgh", "sk-" + "a" * 20,
    "ghp_" + "a1B2" * 9, "gho_0123456789abcdef", "github_pat_11ABCDEFG0abcdefghij",
    "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "glpat-abcdefghij0123456789",
    "xoxb-123456789012-abcdef", "hf_abcdefghijklmnopqrstuvwx", "sk_live_abcdefgh12345678",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.", "AIza" + "Sy0-_" * 7,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIE and no end",
]  # fmt: skip


@cases("name", SECRET)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    assert redacted({name: "hunter2"}) == {name: REDACTED}
    assert redacted({name: {"a": ["hunter2"]}}) == {name: REDACTED}
    assert redacted({name: 1234}) == {name: REDACTED}


@cases("name", HARMLESS)
def test_names_that_only_look_like_them(name: str) -> None:
    assert not is_secret(name)
    given = {name: "hunter2", "a": [{name: 512}]}
    assert redacted(given) == given


def test_what_gives_nothing_away_stays() -> None:
    """That there is no password, or that a token is used, is no secret."""
    given = {"password": None, "use_token": True, "cookie": False}
    assert redacted(given) == given
    assert redacted({"password": ""}) == {"password": REDACTED}


def test_words_of_names() -> None:
    assert words_of("OPENAI_API_KEY") == ["openai", "api", "key"]
    assert words_of("openaiAPIKey2") == ["openai", "api", "key", "2"]
    assert words_of("chunkSize-max.k") == ["chunk", "size", "max", "k"]
    assert words_of("_") == []


@cases("key", KEYS)
def test_text_that_is_a_key(key: str) -> None:
    assert redacted(key) == REDACTED
    assert redacted([f"use {key}"]) == [f"use {REDACTED}"]
    assert redacted({"note": {"x": (f"({key}", 1)}}) == {"note": {"x": (f"({REDACTED}", 1)}}
    assert list(redacted({key: 1})) == [REDACTED]  # also as a name


@cases(
    ("text", "expected"),
    [
        ("Bearer abc", "Bearer [redacted]"),
        ("curl -H 'Authorization: Bearer a.b-c_d='", "curl -H 'Authorization: Bearer [redacted]'"),
        ("bearer abc123", "bearer [redacted]"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]"),
        ("--api-key=abc --k=5", "--api-key=[redacted] --k=5"),
        ("host=db password=s3cr;et user=me", "host=db password=[redacted];et user=me"),
        ("password='a b' x", "password=[redacted] x"),
        ('{"api_key": "a\\"b", "k": "5"}', '{"api_key": "[redacted]", "k": "5"}'),
    ],
)
def test_text_with_a_secret_in_it(text: str, expected: str) -> None:
    assert redacted(text) == expected


@cases(
    "text",
    [
        "", "the bearer of news", "Basic information", "task-123456", "disk-abc123def456",
        "sk-learn", "sk-learn-based-reranker", "max_tokens=512", "if token == other:", "AKIA",
        "eyJ", "a.b.c", "a@b.c", "http://host:80/a@b", "https://host/?q=a:b@c", "http://[::1]:80/a@b",
        "sqlite:///runs:2024@home.db", "https://me@host/x", "What is an API key?", "key=value",
        '{"token_count": "5"}', "Where do I find the token: in settings.", "ghp_short",
    ],
)  # fmt: skip
def test_text_without_a_secret_stays(text: str) -> None:
    assert redacted(text) == text


@cases(
    ("url", "expected"),
    [
        ("postgresql://me:pw@db:5432/runs", "postgresql://me:[redacted]@db:5432/runs"),
        ("postgresql://me:p@w@db/runs", "postgresql://me:[redacted]@db/runs"),
        ("postgresql://me:p/w#1@db/runs", "postgresql://me:[redacted]@db/runs"),
        ("redis://:pw@host", "redis://:[redacted]@host"),
        ("https://me:@host/", "https://me:[redacted]@host/"),
        ("https://me:1234@host/a@b", "https://me:[redacted]@host/a@b"),
        ("https://host/?api_key=abc&k=5#x", "https://host/?api_key=[redacted]&k=5#x"),
        ("https://host/cb#access_token=abc", "https://host/cb#access_token=[redacted]"),
        ("postgresql:///runs?user=me&password=pw", "postgresql:///runs?user=me&password=[redacted]"),
        ("https://ghp_0123456789abcdef@host/x", "https://[redacted]@host/x"),
        ("https://host:8080/path?k=5", "https://host:8080/path?k=5"),
        ("sqlite:///ragauge.db", "sqlite:///ragauge.db"),
        ("", ""),
    ],
)  # fmt: skip
def test_urls(url: str, expected: str) -> None:
    assert redacted_url(url) == expected
    assert redacted_url(expected) == expected
    assert redacted(f"see {url} and a@b.c") == f"see {expected} and a@b.c"


def test_a_url_alone_may_have_anything_in_its_password() -> None:
    assert redacted_url('postgresql://me:a "b" <c>@db/x') == "postgresql://me:[redacted]@db/x"


def test_settings_and_commands() -> None:
    """The name may stand beside the value rather than before it."""
    given = [{"name": "API_KEY", "value": "abc"}, {"name": "K", "value": "5"}]
    assert redacted(given) == [{"name": "API_KEY", "value": REDACTED}, given[1]]
    command = ["run", "--api-key", "abc", "--top-k", "5", "--token"]
    assert redacted(command) == ["run", "--api-key", REDACTED, "--top-k", "5", "--token"]
    assert redacted(["password", "abc"]) == ["password", "abc"]  # a list of words


@cases(
    ("words", "expected"),
    [
        (["-p", "hunter2"], ["-p", REDACTED]),
        (["-p", "8080"], ["-p", "8080"]),
        (["-p", "./data"], ["-p", "./data"]),
        (["-p", "index.json"], ["-p", "index.json"]),
        (["-p", "-v"], ["-p", "-v"]),
        (["-u", "me:geheim"], ["-u", f"me:{REDACTED}"]),
        (["-u", "me"], ["-u", "me"]),
        (["-H", "X-Tenant: t-17"], ["-H", f"X-Tenant: {REDACTED}"]),
        (["-H", "Accept: text/html"], ["-H", "Accept: text/html"]),
        (["-k", "10"], ["-k", "10"]),
        (["-k", "abc123xyz"], ["-k", REDACTED]),
        (["-t", "hybrid"], ["-t", "hybrid"]),
        (["-a", "s3cret", "-w", "other"], ["-a", REDACTED, "-w", REDACTED]),
    ],
)
def test_secrets_behind_short_options(words: list[str], expected: list[str]) -> None:
    assert redacted(words) == expected


@cases(
    ("values", "text", "expected"),
    [
        (["geheim-123"], "xgeheim-123x", f"x{REDACTED}x"),
        (["Bearer t0ken-abc"], "I got t0ken-abc", f"I got {REDACTED}"),
        (["a b/c=ü12"], "?q=a%20b%2Fc%3D%C3%BC12&", f"?q={REDACTED}&"),
        (["geheim-123"], "Z2VoZWltLTEyMw==", REDACTED),
        (["Basic bWU6Z2VoZWltMQ=="], "me / geheim1", f"me / {REDACTED}"),
        (["docs"], "docs/a, mydocs, docs7", f"{REDACTED}/a, mydocs, docs7"),
        (["abc"], "abc", "abc"),
        (["longer-secret", "longer-secret-2"], "longer-secret-2", REDACTED),
        ([], "anything", "anything"),
        ([""], "", ""),
    ],
)
def test_values_that_are_known_to_be_secret(values: list[str], text: str, expected: str) -> None:
    assert SecretValues(values).hide(text) == expected


def test_known_values_are_found_at_any_depth_and_counted() -> None:
    secrets = SecretValues(['ge"heim\\1'])
    answer = {"hits": [{"id": "a", "text": 'x ge"heim\\1 y'}], 'ge"heim\\1': (1, None)}
    safe = secrets.hide_in_answer(answer, json.dumps(answer).encode())
    assert safe == {"hits": [{"id": "a", "text": f"x {REDACTED} y"}], REDACTED: (1, None)}
    other = {"hits": ["b"]}
    assert secrets.hide_in_answer(other, json.dumps(other).encode()) is other
    assert secrets.hidden == 1


def test_what_was_taken_out_is_found_again() -> None:
    url = "http://me:pw@h/?api_key=1&k=2"
    assert secret_parts(url, redacted_url(url)) == ["pw", "1"]
    assert secret_parts("a b", "a b") == []


def test_order_and_types_stay_and_the_given_data_too() -> None:
    given = {"z": [1, 2.5, None, True], "a": ({"k": 5}, ("x",)), 3: "three", "token": "t", "b": {}}
    before = json.dumps(given)
    found = redacted(given)
    assert json.dumps(given) == before
    assert list(found) == ["z", "a", 3, "token", "b"]
    assert found == {**given, "token": REDACTED}
    assert type(found["a"]) is tuple
    assert type(found["a"][1]) is tuple
    assert found["z"] is not given["z"]
    assert [type(each) for each in found["z"]] == [int, float, type(None), bool]


def test_two_names_that_become_one_are_told_apart() -> None:
    found = redacted({"ghp_0123456789abc": 1, "ghp_0123456789abd": 2})
    assert found == {REDACTED: 1, f"{REDACTED} 2": 2}


@pytest.mark.slow
def test_deep_and_circular_data() -> None:
    deep: Any = "sk-abc123def456"
    for level in range(50_000):
        deep = [deep] if level % 3 else {"a": (deep,)}
    found = redacted(deep)
    while not isinstance(found, str):
        found = found["a"] if isinstance(found, dict) else found[0]
    assert found == REDACTED
    circle: dict[str, Any] = {"token": "t", "k": 5}
    circle["self"] = [circle, (circle,)]
    found = redacted(circle)
    assert (found["token"], found["k"]) == (REDACTED, 5)
    assert found["self"][0] is found
    assert found["self"][1][0] is found


def test_long_text_is_no_trouble() -> None:
    """Each of these took minutes if a pattern were tried again from every place in it."""
    for piece in (
        "a",
        "://",
        "://a:b",
        '"',
        '"a":',
        "eyJ",
        "sk-",
        "a=",
        "-",
        "password",
        "@:",
        "-eyJ",
        "sk-a",
    ):
        text = piece * (100_000 // len(piece))
        assert isinstance(redacted(text), str)


letters = st.text(string.ascii_letters + string.digits, min_size=8, max_size=30)
names = st.sampled_from(SECRET).flatmap(
    lambda name: st.sampled_from([name, name.upper(), name.lower(), f"my_{name}", f"{name}-x"])
)


def planted(secret: str, name: str) -> st.SearchStrategy[Any]:
    """Data with a secret somewhere in it, in one of the ways in which it is recognised."""
    core = st.sampled_from(
        [
            {name: secret}, {name: [secret, {"a": secret}]}, f"https://me:{secret}@host/x",
            f"and ghp_{secret}{'0' * 4}", f"Bearer {secret}", {f"{name}": {"k": secret}},
            {"url": f"redis://:{secret}@h"}, {"key": name, "value": secret},
        ]
    )  # fmt: skip
    return st.recursive(
        core,
        lambda inner: (
            st.lists(inner | st.integers(), min_size=1, max_size=3)
            | st.dictionaries(st.sampled_from(HARMLESS), inner, min_size=1, max_size=3)
            | st.tuples(inner, st.none())
        ),
        max_leaves=5,
    )


@given(st.data(), letters, names)
def test_no_planted_secret_survives(data: st.DataObject, secret: str, name: str) -> None:
    marked = f"Zq9{secret}"
    given_data = data.draw(planted(marked, name))
    found = redacted(given_data)
    assert marked not in json.dumps(found)
    assert redacted(found) == found


plain = st.none() | st.booleans() | st.integers() | st.text(string.ascii_lowercase + " ,.?")


@given(
    st.recursive(
        plain,
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(HARMLESS), inner),
        max_leaves=20,
    )
)
def test_harmless_data_stays(given_data: Any) -> None:
    found = redacted(given_data)
    assert found == given_data
    assert json.dumps(found) == json.dumps(given_data)  # the order too


@given(st.text())
def test_any_text_is_safe(text: str) -> None:
    """Nothing is raised, and a second look finds nothing new."""
    once = redacted(text)
    assert redacted(once) == once
    redacted_url(text)
    is_secret(text)


parts = st.sampled_from(
    ('"', "'", "=", ":", " ", ": ", "\\", "\n", "\u0131", "password", "token", "max_tokens",
     "api-key", "Authorization", "AUTHORIZATION", "authorizat\u0131on", "Basic", "Bearer", "BEARER",
     "bearer", "://", "u:p@h", "0123456789abcdef", *KEYS)
)  # fmt: skip


@given(st.lists(parts | st.text(max_size=3), max_size=12).map("".join))
def test_a_quick_look_misses_nothing(text: str) -> None:
    """What is skipped after a look at names and signs would not have been changed."""
    found = text
    if "://" in found:
        found = redaction._PASSWORD.sub(rf"\1:{REDACTED}@", found)
        found = redaction._SLASHED.sub(rf"\1:{REDACTED}@", found)
    found = redaction._KEYS.sub(REDACTED, found)
    found = redaction._BEARER.sub(lambda m: f"{m[1] or m[2] or m[3]}{REDACTED}", found)
    keyless = found
    found = redaction._PAIR.sub(lambda m: f"{m[1]}={REDACTED}" if is_secret(m[1]) else m[0], found)
    found = redaction._MEMBER.sub(
        lambda m: f'"{m[1]}"{m[2]}"{REDACTED}"' if is_secret(m[1]) else m[0], found
    )
    assert redacted(text) == found
    assert keyless == text or not is_free_of_keys(text)


def test_a_member_behind_a_quote_that_is_left_over_is_found() -> None:
    assert redacted('"q": password": "LEAK"') == f'"q": password": "{REDACTED}"'


@cases("name", ["key", "code", "sig", "signature", "auth", "pwd"])
def test_short_names_are_secrets_in_addresses(name: str) -> None:
    assert redacted_url(f"http://h/ok?a=1&{name}=LEAK&b=2") == (
        f"http://h/ok?a=1&{name}=[redacted]&b=2"
    )


def test_headers_are_not_kept() -> None:
    assert redacted({"header.X-Custom": "LEAK"}) == {"header.X-Custom": "[redacted]"}


def test_a_long_word_behind_an_equals_sign_is_looked_at_once() -> None:
    """From each of its letters it took minutes, and a live monitor looks at every text."""
    text = "=" + "a" * 400_000
    assert redacted(text) == text
