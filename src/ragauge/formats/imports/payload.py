"""What stands in the inputs and outputs of spans: a question, an answer, metadata, as any shape.

Frameworks log whatever a function was given and gave back: a text, an object with the text under
some name, a list of messages, or any of these as JSON in a string.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ragauge.model.field_spellings import INDEX_NAMES

_QUESTIONS = (
    "question", "query", "query_str", "q", "input", "user_input", "prompt", "text", "inputs",
    "qb", "query_bundle", "str_or_query_bundle", "user_query", "request", "content", "messages",
)  # fmt: skip
_ANSWERS = (
    "answer", "claim", "output", "outputs", "response", "result", "output_text", "text", "content",
    "completion", "generation", "generations", "message", "messages", "choices", "candidates",
    "kwargs",
)  # fmt: skip
_QIDS = ("qid", "q_id", "question_id", "query_id", "example_id")
_DOCUMENT_MARKS = frozenset(("page_content", "pageContent", "node", "metadata", "score"))
_CITED_PART = "citationsContent"
_DEEPEST = 8

_decode = msgspec.json.Decoder().decode


def decoded(value: Any) -> Any:
    """The object or list that a string holds as JSON; anything else as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return _decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def unquoted(value: Any) -> Any:
    """What a string holds as JSON, a string in quotes and a number too."""
    if isinstance(value, str) and value[:1] in '{["tfn-0123456789':
        try:
            return _decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def question_in(value: Any) -> str | None:
    """The question in what a span was given."""
    return _text_in(decoded(value), _QUESTIONS, "user", 0)


def answer_in(value: Any) -> str | None:
    """The answer in what a span gave back."""
    return _text_in(decoded(value), _ANSWERS, "assistant", 0)


def _text_in(value: Any, names: Iterable[str], role: str, depth: int) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    if depth > _DEEPEST:
        return None
    if isinstance(value, list):
        return _last_message(value, names, role, depth)
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("parts"), list):  # a message of OTel GenAI
        parts = [part for part in value["parts"] if isinstance(part, dict)]  # Gemini's have `text`
        texts = [part.get("content", part.get("text")) for part in parts]
        return "".join(text for text in texts if isinstance(text, str)) or None
    for name in names:
        if value.get(name) is not None:
            text = _text_in(decoded(value[name]), names, role, depth + 1)
            if text is not None:
                return text
    if len(value) == 1:  # whatever the only name is
        return _text_in(decoded(*value.values()), names, role, depth + 1)
    return None


def _last_message(messages: list[Any], names: Iterable[str], role: str, depth: int) -> str | None:
    """The text of the last message of a role; of a list without roles, that of its last entry."""
    if not messages:
        return None
    roles = {"user": ("user", "human"), "assistant": ("assistant", "ai", "model")}[role]
    for message in reversed(messages):
        if isinstance(message, dict):
            said_by = message.get("role") or message.get("type")
            if said_by in roles:
                return _text_in(message, ("content", "parts", "text", "data"), role, depth + 1)
    last = messages[-1]
    if isinstance(last, dict) and not _DOCUMENT_MARKS.isdisjoint(last):
        return None  # what was retrieved is no answer
    if isinstance(last, dict) and (
        last.get("type") in ("text", "output_text") or _CITED_PART in last
    ):  # the parts of one message
        texts = [_part_text(part) for part in messages if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str)) or None
    if isinstance(last, str) and len(messages) > 1:
        return None  # a list of documents or lines is no answer
    return _text_in(last, names, role, depth + 1)


def _part_text(part: Mapping[str, Any]) -> Any:
    """The text of a part: OpenAI's assistants have it one level deeper, Bedrock with citations."""
    cited = part.get(_CITED_PART)
    if isinstance(cited, dict) and isinstance(cited.get("content"), list):
        inner = [one.get("text") for one in cited["content"] if isinstance(one, dict)]
        return "".join(text for text in inner if isinstance(text, str))
    text = part.get("text")
    return text.get("value") if isinstance(text, dict) else text


def qid_in(metadata: Mapping[str, Any]) -> str | None:
    """The id of the question in metadata."""
    for name in _QIDS:
        value = unquoted_text(metadata.get(name))
        if value is not None:
            return value
    return None


def unquoted_text(value: Any) -> str | None:
    """An id as text: Langfuse and MLflow write `"A0001"` with its quotes."""
    if isinstance(value, str) and value[:1] == '"':
        value = unquoted(value)
    if isinstance(value, str):
        return value or None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else None


def index_in(metadata: Mapping[str, Any]) -> dict[str, str] | None:
    """What identifies the index, in metadata."""
    names = {
        name: text
        for name in INDEX_NAMES
        if name in metadata and (text := unquoted_text(metadata[name])) is not None
    }
    return names or None


def finite(value: Any) -> float | None:
    """A number that is one; some exporters write numbers as text."""
    if type(value) is not float:  # what nearly all are
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        value = number if isinstance(value, str) or abs(value) >= 2**53 else value
    return value if math.isfinite(value) else None
