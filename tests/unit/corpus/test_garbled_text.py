"""Text that cannot be words is noticed, and words of any language are not."""

from __future__ import annotations

from ragauge.corpus.garbled_text import count_glyph_numbers, is_garbled
from tests.support.cases import cases

ENGLISH = "It is not easy to say what a word is, but every reader knows one when they see it. " * 3
GERMAN = "Der größte Teil der Wörter einer Sprache besteht aus Silben mit einem Vokal. " * 3
CZECH = "Některá česká slova nemají samohlásku, třeba vlk nebo prst, ale je jich velmi málo. " * 3
RUSSIAN = "Слово есть единица языка, служащая для именования предметов и явлений. " * 3
CHINESE = "語言是人類用來表達思想和交流感情的工具" * 3
CODE = "def f(x, y): return np.sqrt(x ** 2 + y ** 2)  # ptr, src, dst, tmp, str, cmd, idx " * 5
NUMBERS = "1.234 5,678 9 10 11 12 0xff 17:30 2026-11-16 +49 30 1234567 100 % 3/4 1e-9 " * 3
FORMULA = "∀ε > 0 ∃δ > 0: |x| < δ ⇒ |f(x)| < ε; ∑ αᵢ = 1, ∫ f dμ ≤ ‖f‖∞ and so on for all of them"


@cases(
    "text", [ENGLISH, GERMAN, CZECH, RUSSIAN, CHINESE, CODE, NUMBERS, FORMULA, "", "PDF HTML CSS"]
)
def test_words_numbers_code_and_formulas_are_text(text: str) -> None:
    assert not is_garbled(text.split())


def shifted(text: str) -> str:
    return "".join(chr(ord(letter) - 29) if " " < letter < "\x7f" else letter for letter in text)


@cases(
    "text",
    [
        shifted(ENGLISH * 2),
        ENGLISH.translate({ord("e"): "\ue0fe", ord("a"): "\ue0a1", ord("o"): "\ue0b2"}),
        "".join(chr(0xF000 + ord(letter)) for letter in ENGLISH),  # a symbol font of Windows
        "".join(chr(0xF0000 + ord(letter)) for letter in ENGLISH),
        "".join(f"(cid:{ord(letter)})" for letter in ENGLISH),
        "\N{REPLACEMENT CHARACTER}" * 40,
        "\x03\x04\x05\x07" * 10,
    ],
)
def test_glyph_numbers_and_private_letters_are_not(text: str) -> None:
    assert is_garbled(text.split(" "))


def test_some_bullets_of_a_symbol_font_are_nothing() -> None:
    assert not is_garbled(["\uf0b7"] * 5 + ["12"])
    assert not is_garbled([*ENGLISH.split(), *["\uf0b7"] * 10])


def test_glyph_numbers_are_counted() -> None:
    assert count_glyph_numbers(b"a (cid:12)(cid:3) b (cid:x) (cid:400)") == 3
    assert count_glyph_numbers(b"nothing") == 0
