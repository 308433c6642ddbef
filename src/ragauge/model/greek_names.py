"""The names and signs of ΔS and λ, also as files show them that were decoded wrongly."""

from __future__ import annotations

from collections.abc import Iterable

_CODECS = ("latin-1", "mac_roman", "cp437", "cp850")
_DELTA, _INCREMENT = "\u0394", "\u2206"  # alike to the eye; keyboards give the second


def damaged(text: str) -> tuple[str, ...]:
    """Return the forms of a text whose UTF-8 bytes were read as an older encoding.

    Five bytes mean nothing in cp1252: browsers keep them as controls, others drop or replace them.
    """
    raw = text.encode("utf-8", "surrogatepass")
    forms = [
        "".join(_cp1252(byte) or chr(byte) for byte in raw),
        raw.decode("cp1252", "ignore"),
        raw.decode("cp1252", "replace"),
        *(raw.decode(codec) for codec in _CODECS),
    ]
    return tuple(form for form in dict.fromkeys(forms) if form != text)


def _cp1252(byte: int) -> str:
    return bytes([byte]).decode("cp1252", "ignore")


def spellings(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, each followed by its damaged forms."""
    return tuple(dict.fromkeys(form for name in names for form in (name, *damaged(name))))


_WITH_DELTA = tuple(f"{_DELTA}{tail}" for tail in ("S", "S_list", "S_q_ctx", "S_qr", "S_overall"))

DELTA_S = spellings(
    (
        *_WITH_DELTA,
        *(name.replace(_DELTA, _INCREMENT) for name in _WITH_DELTA),
        *("delta_s", "deltaS", "deltas", "DeltaS", "dS", "delta_s_list", "deltaS_list"),
        *("deltaS_q_ctx", "delta_s_q_ctx", "delta_s_qr"),
    )
)

_LAMBDA = ("λ_state", "λ", "λ_observe", "λ_final", "lambda", "lambda_state", "lambda_observe")
LAMBDA = spellings((*_LAMBDA, "lambda_final", "λ_states", "lambda_states"))
"""The names of λ; the plural ones hold a list."""

_WORDS = {
    "→": ("→", "->", "convergent", "converged"),
    "←": ("←", "<-", "divergent", "diverged"),
    "<>": ("<>", "↔", "⟷", "recursive", "transitional", "split"),
    "×": ("×", "x", "chaotic", "chaos", "collapse"),
}
_STATES = {form: state for state, words in _WORDS.items() for form in spellings(words)}
STATE_FORMS = tuple(_STATES)
"""Every sign and word that stands for a state of λ."""


def lambda_state(value: str) -> str | None:
    """Return the state of λ that a sign or a word stands for: `→`, `←`, `<>` or `×`; else None."""
    form = value.strip()
    # As written first: in a damaged sign the case of a letter is a part of the sign.
    return _STATES.get(form) or _STATES.get(form.lower())
