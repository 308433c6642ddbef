"""Word pieces: hand-made vocabularies, and BERT's own against the reference tokenizer."""

from __future__ import annotations

import struct
import unicodedata
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragauge.embed.wordpiece import WordPieces, vocabulary_of, words_of
from tests.support.cases import cases

SMALL = {"un": 7, "##aff": 8, "##able": 9, "a": 10, "##a": 11, ".": 12, "été": 13, "ete": 14}


def table(words: list[str]) -> bytes:
    """A table of words as blingfire lays it out: 96 bytes, a count, the ends, the words."""
    parts = [word.encode() for word in words]
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    return bytes(96) + struct.pack(f"<{len(ends) + 1}i", len(words), *ends) + b"".join(parts)


@cases(
    ("text", "words"),
    [
        ("It's  A test.", ["it", "'", "s", "a", "test", "."]),
        ("Été naïve", ["ete", "naive"]),
        ("tab\tline\nend\u00a0x", ["tab", "line", "end", "x"]),
        ("zero\u200bwidth\0gone", ["zerowidthgone"]),
        ("日本x", ["日", "本", "x"]),
        ("a_b$c", ["a", "_", "b", "$", "c"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_words_and_marks(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@cases(
    ("text", "numbers"),
    [
        ("unaffable", [101, 7, 8, 9, 102]),
        ("a aa.", [101, 10, 10, 11, 12, 102]),
        ("Été", [101, 14, 102]),  # without its accents, so the entry with accents is never met
        ("unaffablex a", [101, 100, 10, 102]),  # what cannot be cut to its end is unknown
        ("a" * 101, [101, 100, 102]),  # and so is a word of more than 100 letters
        ("", [101, 102]),
    ],
)
def test_the_longest_piece_comes_first(text: str, numbers: list[int]) -> None:
    assert WordPieces(SMALL, 16).pieces(text) == (numbers, False)


@pytest.mark.parametrize(("count", "truncated"), [(3, False), (4, True), (400, True)])
def test_a_long_text_is_cut_and_says_so(count: int, truncated: bool) -> None:
    """Five places: a start, three pieces, an end."""
    found = WordPieces(SMALL, 5).pieces("a " * count)
    assert found == ([101, 10, 10, 10, 102], truncated)


@pytest.mark.parametrize("text", ["a " * 30_000, "a" * 50_000 + " a", " " * 50_000 + "a"])
def test_a_very_long_text_is_read_as_far_as_it_matters(text: str) -> None:
    """As it is read whole: 14 pieces; a word that is too long, and another; one word."""
    pieces = WordPieces(SMALL, 16)
    assert pieces.pieces(text) == pieces._pieces(text)


@cases(
    "data", [b"", bytes(200), table([" a", "b"]), b"\xff" * 4096], ids=["none", "0", "other", "ff"]
)
def test_another_table_is_no_vocabulary(data: bytes) -> None:
    assert vocabulary_of(data) is None


@pytest.fixture(scope="module")
def bert() -> dict[str, int]:
    """BERT's vocabulary, out of the package that has it."""
    spec = find_spec("blingfire")
    if spec is None or spec.origin is None:
        pytest.skip("blingfire is not installed: pip install 'ragauge[embed]'")
    found = vocabulary_of((Path(spec.origin).parent / "bert_base_tok.i2w").read_bytes())
    assert found is not None
    return found


def test_the_vocabulary_is_berts(bert: dict[str, int]) -> None:
    known = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "the": 1996, "##ing": 2075}
    assert len(bert) == 30_522
    assert {word: bert[word] for word in known} == known


TEXTS = [
    "What is the capital of France?",
    "Größe, naïveté & œuvre — ΔS ≤ 0.45 (λ → ∞)",
    "日本語のテキスト と 한국어 и русский текст",
    "def f(x): return x**2  # comment\n\tif a[1] != {'b': 2}: pass",
    "مرحبا بالعالم שלום עולם नमस्ते",
    "👩‍💻 🚀🚀 emoji\u200d and e\u0301 combined",
    "x" * 150 + " " + "antidisestablishmentarianism" * 3,
    "Straße ΑΣ İstanbul ǅ ﬁne ½ Ⅷ",
    "http://example.com/a_b?c=d&e=f#g user@host.tld 1,234.56",
    "word " * 400,
]
# The reference knows the characters of an older Unicode: what is newer may be cut otherwise.
known_to_both = st.characters(exclude_categories=("Cs", "Cn", "Co"), max_codepoint=0x2FFF).filter(
    lambda each: unicodedata.ucd_3_2_0.category(each) != "Cn"
)


@pytest.fixture(scope="module")
def reference(bert: dict[str, int]) -> object:
    """The tokenizer that the model was made with."""
    tokenizers = pytest.importorskip("tokenizers")
    found = tokenizers.BertWordPieceTokenizer(vocab=bert, lowercase=True)
    found.enable_truncation(256)
    return found


@cases("text", TEXTS, ids=range(len(TEXTS)))
def test_pieces_are_those_of_the_reference(
    bert: dict[str, int], reference: object, text: str
) -> None:
    theirs = reference.encode(text)  # type: ignore[attr-defined]
    mine = WordPieces(bert, 256).pieces(text)
    assert mine == (theirs.ids, bool(theirs.overflowing))


@given(st.text(known_to_both, max_size=60))
@example("ΑΣ")
@example("İ")
def test_pieces_of_any_text_are_those_of_the_reference(
    bert: dict[str, int], reference: object, text: str
) -> None:
    theirs = reference.encode(text)  # type: ignore[attr-defined]
    assert WordPieces(bert, 256).pieces(text).numbers == theirs.ids


@pytest.mark.slow
def test_pieces_of_the_samples_are_those_of_the_reference(
    bert: dict[str, int], reference: object
) -> None:
    """All lines of this project's own pages."""
    pages = sorted((Path(__file__).parents[3] / "docs").glob("**/*.md"))
    lines = {line for page in pages for line in page.read_text("utf-8").splitlines()}
    pieces = WordPieces(bert, 256)
    encoded = reference.encode_batch(sorted(lines))  # type: ignore[attr-defined]
    assert len(lines) > 1000
    different = [
        line
        for line, theirs in zip(sorted(lines), encoded, strict=True)
        if pieces.pieces(line).numbers != theirs.ids
    ]
    assert not different
