"""From the bytes of one row to its fields, or to what is wrong with the bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from ragauge.files.duplicate_keys import duplicate_keys
from ragauge.files.fields import FieldError, Row
from ragauge.files.json_faults import error_offset, half_surrogate, is_cut
from ragauge.files.ranges import MAX_LINE
from ragauge.model.field_spellings import GOLD_NAMES, TRACE_NAMES

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
# 1e400 is a number like any other where nothing reads it.
_decode_value = msgspec.json.Decoder(float_hook=float).decode


def decode_row(data: bytes, *, cut: bool, overlong: bool) -> Row:
    """Decode the bytes of one row, or raise a FieldError that says what is wrong with them.

    `cut` says that the row ends the file without a newline, so that it may have been cut off.
    """
    if overlong:
        hint = "a newline is missing, or the row holds a whole document: write one row per line"
        raise FieldError("line-too-long", f"the line is longer than {MAX_LINE // 2**20} MiB", hint)
    try:
        _check_text(data, cut=cut)
        fields = _decode_fields(data)
    except msgspec.ValidationError as error:
        raise _not_an_object(data) from error
    except msgspec.DecodeError as error:
        raise _bad_json(data, error, cut=cut) from error
    except RecursionError as error:
        raise _too_deep() from error
    return {name: _value(name, raw) for name, raw in fields.items()}


def duplicate_key_error(data: bytes) -> FieldError | None:
    """What is wrong with a row in which an object has a key twice; None if none has.

    Decoding takes the last of the two, so evidence can be lost without a word.
    """
    keys = duplicate_keys(data)
    if not keys:
        return None
    listed = ", ".join(f"`{key}`" for key in keys[:5]) + (" and more" if len(keys) > 5 else "")
    verb = "stands" if len(keys) == 1 else "stand"
    hint = "keep one of the two; a decoder takes the last and drops the other"
    return FieldError("duplicate-key", f"{listed} {verb} twice in one object", hint)


def _too_deep() -> FieldError:
    return FieldError("too-deep", "the row is nested too deeply", "write a flat object")


def _not_an_object(data: bytes) -> FieldError:
    try:
        _decode_value(data)
    except RecursionError:
        return _too_deep()
    except ValueError:
        pass  # a number of any length is still no object
    text = data.decode().strip()
    message = f"a row must be an object, got {text if len(text) <= 60 else text[:57] + '...'}"
    hint = "write one JSON object per line, or a JSON array of objects"
    return FieldError("not-a-row", message, hint)


def _value(name: str, raw: msgspec.Raw) -> Any:
    try:
        return _decode_value(raw)
    except (ValueError, RecursionError) as error:
        if name not in GOLD_NAMES and name not in TRACE_NAMES:
            return bytes(raw).decode()  # nothing reads it
        message = f"`{name}` holds a number that is too long: {error}"
        raise FieldError("bad-field", message, "use a smaller number") from error


def _bad_json(data: bytes, error: msgspec.DecodeError, *, cut: bool) -> FieldError:
    if half_surrogate(data) is not None and not is_cut(data):
        hint = "write both halves, or the character itself in UTF-8"
        return FieldError("bad-json", "half of a surrogate pair is no character", hint)
    # No token that can be cut is longer than this; what fails earlier is wrong in itself.
    near_end = error_offset(error, data) >= len(data) - 8
    if cut and near_end and is_cut(data):
        return _truncated()
    return FieldError("bad-json", str(error), _json_hint(data))


def _truncated() -> FieldError:
    hint = "the writer was stopped: write the row again, or remove the line"
    return FieldError("truncated-line", "the last line ends in the middle of an object", hint)


def _check_text(data: bytes, *, cut: bool) -> None:
    if b"\0" in data:
        hint = "the file was damaged while it was written; write the row again"
        raise FieldError("nul-byte", f"NUL byte at byte {data.index(0)} of the row", hint)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if cut and error.reason == "unexpected end of data":
            raise _truncated() from error
        message = f"byte {error.start} of the row is not UTF-8: {error.reason}"
        raise FieldError("bad-encoding", message, "convert the file to UTF-8") from error


def _json_hint(data: bytes) -> str:
    body = data.strip()
    if b"NaN" in body or b"Infinity" in body:
        return "NaN and Infinity are not JSON: write null"
    if body.endswith(b"},") and not is_cut(body):
        return "remove the comma at the end of the line"
    if body in (b"{", b"}", b"[", b"]") or body.endswith((b",", b"{", b"[")):
        return "write each object on one line, or the whole file as one JSON array"
    if body.endswith((b",}", b",]", b", }", b", ]")):
        return "remove the comma before the closing bracket"
    if body.startswith(b"{'"):
        return "JSON strings take double quotes"
    if not body.startswith(b"{"):
        return "every line must be one JSON object"
    return "check the line with a JSON tool"
