"""The names and signs of ΔS and λ, whole and damaged."""

from __future__ import annotations

from ragauge.model.greek_names import DELTA_S, LAMBDA, damaged, lambda_state, spellings
from tests.support.cases import cases

SIGNS = ["→", "←", "<>", "×"]
DELTA_IN_CP1252 = "\u00ce\u201d"
LAMBDA_IN_CP1252 = "\u00ce\u00bb"


def test_the_seed_s_own_damage_is_understood() -> None:
    """The seed page was read as cp1252: these are its two keys and its one sign."""
    assert DELTA_IN_CP1252 + "S" in DELTA_S
    assert LAMBDA_IN_CP1252 + "_state" in LAMBDA
    assert LAMBDA_IN_CP1252 + "_observe" in LAMBDA
    assert lambda_state("\u00e2\u2020\u2019") == "→"


@cases("codec", ["cp1252", "latin-1", "mac_roman", "cp437", "cp850"])
@cases("sign", SIGNS)
def test_every_sign_survives_every_codec(sign: str, codec: str) -> None:
    """A byte without a meaning is replaced, as most readers do."""
    assert lambda_state(sign.encode().decode(codec, "replace")) == sign
    assert lambda_state(sign.encode().decode(codec, "ignore")) == sign


@cases("codec", ["cp1252", "latin-1", "mac_roman", "cp437", "cp850"])
def test_every_name_survives_every_codec(codec: str) -> None:
    """Delta, the increment sign and lambda alike."""
    for name in ("\u0394S", "\u0394S_list", "\u0394S_overall", "\u2206S", "\u2206S_q_ctx"):
        assert name in DELTA_S
        assert name.encode().decode(codec) in DELTA_S
    for name in ("λ", "λ_state", "λ_states", "λ_final"):
        assert name in LAMBDA
        assert name.encode().decode(codec) in LAMBDA


def test_a_byte_without_meaning_in_cp1252_is_kept_dropped_or_replaced() -> None:
    """The left arrow ends in such a byte, 0x90."""
    forms = damaged("←")
    for form in ("\u00e2\u2020\x90", "\u00e2\u2020", "\u00e2\u2020\ufffd", "\u00e2\x86\x90"):
        assert form in forms
        assert lambda_state(form) == "←"


def test_damage_is_told_once_and_leaves_plain_text_alone() -> None:
    """No duplicates, and never the text itself."""
    assert damaged("delta_s") == ()
    assert damaged("") == ()
    for text in ("λ", "\u0394S", "→", "←", "×"):
        forms = damaged(text)
        assert len(set(forms)) == len(forms) >= 3  # λ has the fewest: some codecs agree on it
        assert text not in forms


def test_a_lone_surrogate_does_no_harm() -> None:
    """JSON may hold one."""
    assert damaged("\ud800")
    assert lambda_state("\ud800") is None


def test_spellings_keep_the_order_of_names() -> None:
    """Each name comes before its own damage, and nothing comes twice."""
    assert spellings(["b", "a", "b"]) == ("b", "a")
    assert spellings(["λ", "a"]) == ("λ", *damaged("λ"), "a")
    for names in (DELTA_S, LAMBDA):
        assert len(set(names)) == len(names)
    assert DELTA_S[0] == "\u0394S"
    assert LAMBDA[0] == "λ_state"
    assert not set(DELTA_S) & set(LAMBDA)


@cases("name", ["delta_s", "deltaS", "DeltaS", "dS", "delta_s_qr"])
def test_ascii_names_of_delta_s(name: str) -> None:
    """They stand as they are."""
    assert name in DELTA_S


@cases(
    ("value", "state"),
    [
        ("->", "→"),
        ("<-", "←"),
        ("<>", "<>"),
        ("\u2194", "<>"),
        ("\u27f7", "<>"),
        ("\u00e2\u2020\u201d", "<>"),  # the two-headed arrow in cp1252
        ("x", "×"),
        ("X", "×"),
        (" → ", "→"),
        ("Convergent", "→"),
        ("CONVERGED\n", "→"),
        ("divergent", "←"),
        ("diverged", "←"),
        ("recursive", "<>"),
        ("Transitional", "<>"),
        ("split", "<>"),
        ("chaotic", "×"),
        ("Chaos", "×"),
        ("collapse", "×"),
    ],
)
def test_signs_and_words_of_a_state(value: str, state: str) -> None:
    """Case and blanks around a word do not matter."""
    assert lambda_state(value) == state


@cases("value", ["", " ", "→→", "-->", "convergence", "0.3", "stable", "λ"])
def test_anything_else_is_no_state(value: str) -> None:
    """A word that is not known is not guessed at."""
    assert lambda_state(value) is None
