"""Redaction: which names belong to secrets, which text looks like one, and a copy without them.

`redacted` goes by names and looks; `SecretValues` takes out values that are known to be secret.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

REDACTED = "[redacted]"
_LONGEST_NAME = 200

_PLAIN = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_COMPOUND = re.compile(
    "passw(?:or)?d|passphrase|credential|authori[sz]ation"
    "|(?:api|access|secret|private|signing|encryption|subscription|account|master|ssh|auth)"
    "key(?!word|board)"
)
_SHORT = frozenset(("auth", "pwd", "sig", "signature"))
"""Names that are given to secrets where they stand alone, as parameters of a URL do."""

_SECRET_WORD = re.compile("secrets?(?!ar|e|i)|cookie")  # but not a secretary
_BEARING = "access|api|auth|bearer|csrf|id|oauth|refresh|secret|security|session"
_TOKENS = re.compile(f"(?:{_BEARING})tokens")
_BEARERS = frozenset(_BEARING.split("|"))
# A token of text, and not one that opens a door: `eos_token`, `cost_per_token`, `token_count`.
_BEFORE = (
    "bos", "cls", "end", "eos", "first", "last", "mask", "max", "min", "next", "num", "pad", "per",
    "pre", "refusal", "sep", "special", "start", "stop", "sub", "target", "unk",
)  # fmt: skip
_AFTER = frozenset(
    (
        "budget", "cap", "chunk", "chunker", "chunks", "cost", "count", "counter", "counts",
        "encoding", "estimate", "len", "length", "limit", "limits", "max", "min", "model", "num",
        "overlap", "per", "price", "rate", "ratio", "size", "splitter", "text", "total", "type",
        "usage", "window",
    )
)  # fmt: skip

# Passwords of URLs: up to the last @ before the path; and, where there is none and what follows
# the colon is no port, beyond a slash that should have been written as %2F.
_USER = r'://[^\s/?#:@"<>\[\]]*'
_PASSWORD = re.compile(rf'({_USER}):[^\s/?#"<>]*@')
_SLASHED = re.compile(rf'({_USER}):(?!\d*(?:[/?#\s"<>]|\Z))(?!\[redacted\]@)[^\s"<>]{{1,256}}@')
_WHOLE = re.compile(r"(\A[^:/?#]*://[^/?#:@\[\]]*):[^/?#]*@")
_PAIR = re.compile(r"""(?<![\w.-])([\w.-]++)=(?!=)("[^"]*"|'[^']*'|[^\s&;,"'<>]+)""")
_PARAMETER = re.compile(r"([?&](?:key|code)=)[^&#]+")  # harmless names elsewhere
_MEMBER = re.compile(r'"([^"\\]{1,100})"(\s*+:\s*+)"(?:[^"\\]|\\.)*+"')
# The names before `=` and `:`, for a text that is read from its end: so a pattern begins with one
# letter, which is found ten times as fast.
_PAIR_NAME = re.compile(r"=(?=([\w.-]++))")
_MEMBER_NAME = re.compile(r':(?=\s*+"([^"\\]{1,100})")')
_KEYS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9])(?:"
    r"sk-(?=[A-Za-z_-]{0,40}[0-9]|[\w-]{0,40}?[A-Za-z0-9]{16})[\w-]{6,}"
    r"|[prsw][kh](?:sec)?_(?:live|test)_[A-Za-z0-9]{8,}"
    r"|gh[oprsu]_[A-Za-z0-9]{10,}|github_pat_\w{10,}|glpat-[\w-]{10,}"
    r"|xox[abeprs]-[\w-]{10,}|hf_[A-Za-z0-9]{16,}|AIza[\w-]{30,}|npm_[A-Za-z0-9]{30,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r")|(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*"
)
_BEARER = re.compile(
    r"\b(B(?:earer|EARER)\s+)[\w.~+/=-]{3,}"
    r"|\b(bearer\s+)(?=[A-Za-z.~+/=_-]*[0-9]|[\w.~+/=-]{24})[\w.~+/=-]{3,}"
    r"|\b((?i:authorization)\s*:\s*(?i:basic|digest|token)\s+)[^\s\"']+"
)
_KEY_SIGN = re.compile(
    r"-(?:(?<=sk-)|(?<=glpat-)|----BEGIN )"
    r"|_(?:(?<=gh[oprsu]_)|(?<=hf_)|(?<=npm_)|(?<=github_)pat_|live_|test_)"
    r"|x(?<=xox)|I(?:(?<=AI)za|(?<=A[KS]I)A)|J(?<=eyJ)"
    r"|b(?=earer)|B(?=earer|EARER)|z(?<=(?i:authoriz))|Z(?<=(?i:authoriz))"
)
"""A part of whatever `_KEYS` and `_BEARER` find. Each begins with a letter that is rare in texts,
so that one pass finds them: it takes a third of the time of a search for each."""


_OPEN_HEADERS = re.compile(
    r"accept(?:-.+)?|cache-control|connection|content-(?!md5|disposition).+|date|dnt|expect|from|host"
    r"|if-.+|max-forwards|origin|pragma|prefer|range|referer|te|upgrade|user-agent|via|x-request-id",
    re.IGNORECASE,
)
"""Headers that say how a request is to be answered, and not who asks."""

_NUMBER_OR_PATH = re.compile(r"-.*|[\d.,:%+-]*|.*[/\\].*|.*\.[A-Za-z]\w{0,4}", re.DOTALL)
_RANDOM = re.compile(r"(?=.*[A-Za-z])(?=.*[\d!#$%&*+:;?@^~])\S{6,}")


def redacted(value: Any) -> Any:
    """Copy JSON-like data without the secrets in it.

    What a secret's name stands for becomes "[redacted]", but for null, true and false, which
    give nothing away; text that looks like a secret loses that part. Order and types stay. Data may
    be nested as deeply as it likes, and contain itself.
    """
    if isinstance(value, str):
        return _text(value)
    root: list[Any] = [None]
    todo: list[tuple[Any, Any, Any]] = [(root, 0, value)]
    tuples: list[tuple[Any, Any, list[Any]]] = []
    copies: dict[int, tuple[Any, Any]] = {}  # with the original, which keeps its id taken
    while todo:
        holder, place, item = todo.pop()
        if isinstance(item, str):
            holder[place] = _text(item)
        elif isinstance(item, Mapping | list):
            if id(item) not in copies:
                copy, inside = _object(item) if isinstance(item, Mapping) else _array(item)
                copies[id(item)] = (item, copy)
                todo += [(copy, *member) for member in inside]
            holder[place] = copies[id(item)][1]
        elif isinstance(item, tuple):
            copy, inside = _array(item)
            todo += [(copy, *member) for member in inside]
            tuples.append((holder, place, copy))
        else:
            holder[place] = item
    for holder, place, items in reversed(tuples):  # the inner ones first
        holder[place] = tuple(items)
    return root[0]


def redacted_url(url: str) -> str:
    """Take the password, and parameters that name secrets, out of a URL."""
    url = _PARAMETER.sub(rf"\1{REDACTED}", url)
    return _text(_WHOLE.sub(rf"\1:{REDACTED}@", url))


def is_secret_header(name: str) -> bool:
    """Whether the value of an HTTP header may be a secret: all but a few well-known ones."""
    return _OPEN_HEADERS.fullmatch(name.strip()) is None


def is_free_of_keys(text: str) -> bool:
    """Whether nothing in a text can be a key or a password by its look.

    Then only `without_secret_pairs` may change it. Many texts can be asked about at once, one
    behind the other.
    """
    return "://" not in text and _KEY_SIGN.search(text) is None


def is_secret(name: str) -> bool:
    """Whether a name, in any case and spelling, is one that secrets are given."""
    # Few names, in very many texts; but what is this long is none, and would fill the memory.
    return _is_secret(name) if len(name) <= _LONGEST_NAME else _is_secret.__wrapped__(name)


@lru_cache(4096)
def _is_secret(name: str) -> bool:
    if _COMPOUND.search("".join(_PLAIN.findall(name)).lower()):
        return True
    if name.lower() in _SHORT or name.lower().startswith("header."):
        return True
    plain = [word.lower() for word in _PLAIN.findall(name)]
    return _has_secret_word(plain) or _has_secret_word(words_of(name))


def words_of(name: str) -> list[str]:
    """Split a name such as `OPENAI_API_KEY`, `top-k` or `chunkSize` into words, in lower case."""
    return [word.lower() for word in _CAMEL.findall(name)]


def _has_secret_word(words: list[str]) -> bool:
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if _SECRET_WORD.search(word) or _TOKENS.fullmatch(word):
            return True
        if word == "tokens" and before in _BEARERS:
            return True
        name = word.removesuffix("value")  # TOKENVALUE shows no border between its words
        if name.endswith("token"):
            harmless = (name.removesuffix("token") or before).endswith(_BEFORE)
            if not harmless and not _AFTER.intersection(words[place + 1 : place + 2]):
                return True
    return False


def _object(original: Mapping[Any, Any]) -> tuple[dict[Any, Any], list[tuple[Any, Any]]]:
    """A copy with what can be decided here, and what is still to be looked at."""
    copy: dict[Any, Any] = {}
    inside = []
    # As lists of settings have it: {"name": "API_KEY", "value": "..."}
    names_secret = any(_names_secret(original.get(field)) for field in ("name", "key"))
    for key, value in original.items():
        place = _free(_text(key), copy) if isinstance(key, str) else key
        hidden = _names_secret(key) or (names_secret and key == "value")
        copy[place] = REDACTED if hidden else None
        if not hidden or _is_open(value):
            inside.append((place, value))
    return copy, inside


def _array(original: list[Any] | tuple[Any, ...]) -> tuple[list[Any], list[tuple[Any, Any]]]:
    copy: list[Any] = [REDACTED] * len(original)
    inside = []
    for place, value in enumerate(original):
        before = original[place - 1] if place else None
        # As commands have it: ["--api-key", "..."]
        option = before if isinstance(before, str) and before.startswith("-") else ""
        if not ("=" not in option and _names_secret(option)) or _is_open(value):
            short = len(option) == 2 and isinstance(value, str)
            inside.append((place, _after_short_option(option, value) if short else value))
    return copy, inside


def _after_short_option(option: str, value: str) -> str:
    """What stands behind `-p`, `-u`, `-H` and the like, without the secret in it.

    Short options mean something else in every program, so numbers and paths stay, and the less
    common ones hide only what no person would type.
    """
    name, colon, rest = value.partition(":")
    if option == "-H" and colon and rest.strip():
        return f"{name}: {REDACTED}" if is_secret_header(name) else value
    if option == "-u" and colon and rest:
        return f"{name}:{REDACTED}"
    plain = _NUMBER_OR_PATH.fullmatch(value) is not None
    if (option in ("-p", "-a", "-w") and not plain) or (
        option in ("-k", "-t", "-s", "-P") and not plain and _RANDOM.fullmatch(value)
    ):
        return REDACTED
    return value


def _names_secret(name: object) -> bool:
    return isinstance(name, str) and is_secret(name)


def _is_open(value: object) -> bool:
    """Whether a value cannot be a secret, whatever its name."""
    return value is None or isinstance(value, bool)


def _free(key: str, taken: Mapping[Any, Any]) -> str:
    """The key, or with a number if two keys have become the same."""
    free, number = key, 2
    while free in taken:
        free, number = f"{key} {number}", number + 1
    return free


def _text(text: str) -> str:
    """Replace what looks like a secret in a text."""
    if "://" in text:
        text = _PASSWORD.sub(rf"\1:{REDACTED}@", text)
        text = _SLASHED.sub(rf"\1:{REDACTED}@", text)
    if _KEY_SIGN.search(text):
        text = _KEYS.sub(REDACTED, text)
        text = _BEARER.sub(lambda match: f"{match[1] or match[2] or match[3]}{REDACTED}", text)
    return without_secret_pairs(text)


def without_secret_pairs(text: str) -> str:
    """Replace the values of names that belong to secrets, in `name=value` and `"name": "value"`."""
    # Few texts have such a name, and to look at the names alone takes a tenth of the time.
    has_pairs, has_members = "=" in text, '"' in text
    if has_pairs or has_members:
        backwards = text[::-1]
        if has_pairs and _has_secret(_PAIR_NAME, backwards):
            text = _PAIR.sub(lambda match: _without_value(match, rf"\1={REDACTED}"), text)
            backwards = text[::-1]
        if has_members and _has_secret(_MEMBER_NAME, backwards):
            text = _MEMBER.sub(lambda match: _without_value(match, rf'"\1"\2"{REDACTED}"'), text)
    return text


def _has_secret(names: re.Pattern[str], backwards: str) -> bool:
    return any(is_secret(name[::-1]) for name in set(names.findall(backwards)))


def _without_value(match: re.Match[str], template: str) -> str:
    return match.expand(template) if is_secret(match[1]) else match[0]


class SecretValues:
    """Values that are known to be secret: taken out of whatever repeats them.

    A system may repeat what it was sent: as it was, as the part of a URL, or in base64. Short
    values count where they stand alone; those of fewer than four characters cannot be told from
    ordinary text, and stay. `hidden` counts the answers that had one.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {
            form
            for value in values
            for form in _forms(value.strip())
            if len(form) >= _FEWEST and form != REDACTED
        }
        self.hidden = 0
        self._lock = threading.Lock()
        self._pattern = _any_of(forms)
        self._in_json = _any_of({json.dumps(form, ensure_ascii=False)[1:-1] for form in forms})

    def __bool__(self) -> bool:
        return self._pattern is not None

    def hide(self, text: str) -> str:
        """A message without the values."""
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def hide_in(self, data: Any) -> Any:
        """JSON-like data without the values, in keys and texts at any depth."""
        if self._pattern is None:
            return data
        if isinstance(data, str):
            return self.hide(data)
        if isinstance(data, Mapping):
            return {self.hide_in(key): self.hide_in(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return type(data)(map(self.hide_in, data))
        return data

    def hide_in_answer(self, answer: Any, encoded: bytes) -> Any:
        """An answer without the values; `encoded` is its JSON, for a quick look before a copy."""
        pattern = self._in_json
        if pattern is None or not pattern.search(encoded.decode("utf-8", errors="replace")):
            return answer
        with self._lock:  # many threads ask
            self.hidden += 1
        return self.hide_in(answer)


_FEWEST = 4
_ALONE = 8  # shorter values count only where no letter or digit is beside them


def _forms(value: str) -> Iterable[str]:
    """A value as it may be repeated; of a header with a scheme, also the credentials alone."""
    import base64
    from urllib.parse import quote

    scheme, _, credentials = value.partition(" ")
    parts = [value, credentials.strip()] if scheme.isalpha() and credentials else [value]
    if scheme.lower() == "basic" and credentials:
        with suppress(ValueError):  # it may be anything
            pair = base64.b64decode(credentials, validate=True).decode()
            parts += [pair, pair.partition(":")[2]]
    for part in parts:
        yield part
        yield quote(part, safe="")
        if len(part) >= _FEWEST:
            yield base64.b64encode(part.encode(errors="replace")).decode()


def _any_of(forms: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for any of some texts; the longest first, as one may be a part of another."""
    patterns = [
        re.escape(form) if len(form) >= _ALONE else rf"(?<!\w){re.escape(form)}(?!\w)"
        for form in sorted(forms, key=lambda form: (-len(form), form))
    ]
    return re.compile("|".join(patterns)) if patterns else None


def secret_parts(text: str, shown: str) -> list[str]:
    """What was taken out of a text where it was redacted."""
    pattern = "(.+?)".join(map(re.escape, shown.split(REDACTED)))
    match = re.fullmatch(pattern, text, re.DOTALL) if REDACTED in shown else None
    return [] if match is None else [part for part in match.groups() if part != REDACTED]


SECRET = ("password", "sslpassword")
"""The options of a URL that nobody may see."""


def without_password(url: str) -> str:
    """The URL as messages may show it: the password is gone, wherever it stood."""
    from urllib.parse import unquote

    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return scheme.partition(":")[0] + ":..." if "@" in url else url
    place, mark, query = rest.partition("?")
    if "@" in place:
        person, _, host = place.rpartition("@")
        place = f"{person.partition(':')[0]}@{host}"
    elif "@" in rest and re.match(r"[^/\[:]*:(?!\d*(?:[/,]|$))", place):
        # A password with a bare question mark in it; what follows its end cannot be told apart.
        return f"{scheme}://{place.partition(':')[0]}@{rest.rpartition('@')[2]}"
    shown = [pair for pair in query.split("&") if unquote(pair.partition("=")[0]) not in SECRET]
    return f"{scheme}://{place}" + (mark + "&".join(shown) if any(shown) else "")
