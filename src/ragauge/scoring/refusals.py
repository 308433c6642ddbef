"""Natural refusals: whether an answer declines as a whole, by the patterns of some languages.

An answer is cut into clauses. Each declines ("I cannot find ..."), says what the sources lack ("the
context does not mention ..."), accompanies a refusal (apologies, advice, how one would go about it,
what the sources hold instead), or says something. An answer that says something before or after
declining is no refusal, but for what leads to a conclusion that declines. See decision 0048.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib import import_module
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from ragauge.text import citation_list

VERSION = 1
"""The version of the rules below and of the patterns of all languages: it grows when they change,
and so do the versions of the metrics that depend on refusals."""


class LazyPattern:
    """A pattern that is compiled when it is first used: those of English take 30 ms.

    A run whose answers have none of the stems uses none of them.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(self.pattern)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        """Its `match`, kept so that a call costs no more than that of the pattern."""
        return self.compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        """Its `search`, kept as well."""
        return self.compiled.search


class LanguagePatterns(Struct, frozen=True, kw_only=True):
    """How a language declines. Patterns are searched in lower-case clauses.

    replaces   spellings that patterns need not know, as those of contractions, and the usual ones
    stems      pieces of text of which every refusal of more than a word has at least one: answers
               and clauses without any are not looked at further, which costs a hundredth of the
               patterns
    whole      short answers that are refusals as they stand, from their beginning to their end
    declines   the speaker declines, or an answer cannot be given
    lacks      the sources do not hold something
    unless     before one of these words, `lacks` tells of the sources; behind it, of a condition
    opens      what comes before a refusal and is no answer: an apology, what would be needed
    asides     what comes behind a refusal and is no answer: advice, what the sources hold instead
    turns      how a clause begins that goes on to answer in spite of what was said before
    concludes  how a clause begins that draws a conclusion
    results    how a clause begins that gives a result
    supposes   how a clause begins that only supposes something
    answers    what gives an answer, whatever else the clause says
    splits     where a sentence has a new clause
    concedes   the beginning of a sentence that only the rest of it counts behind
    """

    replaces: tuple[tuple[str, str], ...] = ()
    stems: tuple[str, ...]
    whole: LazyPattern
    declines: LazyPattern
    lacks: LazyPattern
    unless: LazyPattern
    opens: LazyPattern
    asides: LazyPattern
    turns: LazyPattern
    concludes: LazyPattern
    results: LazyPattern
    supposes: LazyPattern
    answers: LazyPattern
    splits: re.Pattern[str]
    concedes: re.Pattern[str]


# A sentence ends at a full stop before a blank, but not behind an abbreviation; a clause also at a
# semicolon. Line ends, as those of lists, end both.
_SENTENCE = re.compile(
    r"(?<=[.!?;])(?<!\binc\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcorp\.)(?<!\bltd\.)"
    r"(?<!\bco\.)(?<!\bz\.b\.)(?<!\bbzw\.)(?<!\bu\.s\.)(?<!\bno\.)(?<!\bdr\.)(?<!\bmr\.)(?<!\bms\.)(?<!\bst\.)(?<!\s[a-z]\.)[\"')\]»]*+\s+"
    r"|\n+"
)
_MARKUP = re.compile(r"\[[0-9, ]{0,40}\]|[*_`#]+|\\[\[\]()]")
_QUOTED = re.compile(r"\"[^\"\n]{1,200}\"")
_NUMBER = re.compile(r"(?m)^ ?([0-9]{1,2})\. ")
_LABEL = re.compile(r"^(?:final )?(?:answer|response|antwort|réponse|respuesta) ?: ?")
# A single plain blank stays as it is: to replace each by itself takes long.
_BLANKS = re.compile(r"[ \t\r\f\v\u00a0\u202f]{2,}|[\t\r\f\v\u00a0\u202f]")
_ITEM = re.compile(r"[0-9]{1,2}[.)] |[a-z]\) |[-•*] ")
_WORD = re.compile(r"[^\W_]")
_QUOTES = str.maketrans(
    {
        "’": "'",
        "\u2018": "'",
        "\u00b4": "'",
        "…": ".",
        "“": '"',
        "”": '"',
        "„": '"',
        "«": '"',
        "»": '"',
    }
)

_MOST = 20_000
"""Characters of an answer that are looked at: the first and the last half of them. No refusal is
that long, but an answer may be, and it is an answer for what it says at both of its ends."""


ClauseKind = Literal["declines", "lacks", "aside", "says"]
_SHORT = 24
"""Up to this length a text may be a refusal of a word, such as "n/a", that is no stem."""
_DECLINING = ("declines", "lacks")


def any_of(*alternatives: str) -> LazyPattern:
    """A pattern that takes any of some others."""
    return LazyPattern("|".join(alternatives))


def at_words(*alternatives: str) -> LazyPattern:
    """The same for patterns that begin at the beginning of a word, after `^` or a boundary.

    To say so once saves trying dozens of alternatives at every letter, which takes ten times as
    long.
    """
    return LazyPattern(rf"\b(?=\w)(?:{'|'.join(alternatives)})")


def all_of(*alternatives: str) -> LazyPattern:
    """A pattern that takes any of some others from the beginning of a text to its end."""
    return LazyPattern(f"^(?:{'|'.join(alternatives)})$")


class Clause(Struct, frozen=True):
    """A clause of an answer, and what it does: `declines`, `lacks`, `aside` or `says`."""

    text: str
    kind: ClauseKind
    turns: bool
    concludes: bool
    answers: bool


@lru_cache(maxsize=8)
def language_patterns(languages: tuple[str, ...]) -> tuple[LanguagePatterns, ...]:
    """The patterns of some languages."""
    package = "ragauge.scoring.refusal_languages"
    return tuple(import_module(f"{package}.{name}").PATTERNS for name in languages)


_MOST_SEEN = 65_536
_SEEN: dict[tuple[str, ...], dict[bytes, bool]] = {}
"""By languages, which texts decline."""


class NaturalRefusals:
    """Finds the answers that decline as a whole, in some languages."""

    def __init__(self, languages: Iterable[str]) -> None:
        languages = tuple(languages)
        self.languages = language_patterns(languages)
        self._seen = _SEEN.setdefault(languages, {})
        self._stems = tuple(dict.fromkeys(s for one in self.languages for s in one.stems))

    def find(self, texts: Sequence[str]) -> bytes:
        """1 for each text that declines as a whole; texts are in lower case."""
        found = bytearray(len(texts))
        if self._stems:
            for place in self._candidates(texts):
                found[place] = self.declines(texts[place])
        return bytes(found)

    def declines(self, text: str) -> bool:
        """Whether a text in lower case declines as a whole."""
        # The same few sentences come again and again, and a live monitor reads the same answers for
        # several windows: what was found is remembered by a hash, whatever the length.
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found = self._seen.get(key)
        if found is None:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            found = self._seen[key] = self._declines(text)
        return found

    def _declines(self, text: str) -> bool:
        return any(declines_as_a_whole(text, language) for language in self.languages)

    def _candidates(self, texts: Sequence[str]) -> list[int]:
        """The places of the texts that have one of the stems, and of those that are short.

        To search one long text is far quicker than to search many short ones.
        """
        joined = "\0".join(texts)
        if not joined.isascii():
            joined = joined.replace("’", "'")
        ends = list(accumulate(len(text) + 1 for text in texts))
        places = {place for place, text in enumerate(texts) if len(text) <= _SHORT}
        for stem in self._stems:
            place, at = 0, joined.find(stem)
            while at >= 0:
                while ends[place] <= at:
                    place += 1
                places.add(place)
                at = joined.find(stem, ends[place])
        return sorted(places)


def declines_as_a_whole(text: str, language: LanguagePatterns) -> bool:
    """Whether an answer in lower case declines, and gives no part of an answer."""
    plain = _plain(text, language)
    if len(plain) <= 120 and language.whole.match(plain.strip(" .!()[]-–")):
        return True
    return _has_stem(plain, language) and _declining(clauses(plain, language))


def _plain(text: str, language: LanguagePatterns) -> str:
    """An answer without markup, quotes and citations."""
    # Characters are looked for before patterns that need one of them: most answers have none.
    if "[" in text and (listed := citation_list(text)) is not None:
        text = text[: listed.start] + text[listed.end :]
    if len(text) > _MOST:
        text = f"{text[: _MOST // 2]}\n{text[-_MOST // 2 :]}"
    if not text.isascii():
        text = text.translate(_QUOTES)
    if _has_any(text, "[*_`#\\"):
        text = _MARKUP.sub("", text)
    if "  " in text or _has_any(text, "\t\r\f\v\u00a0\u202f"):
        text = _BLANKS.sub(" ", text)
    text = text.strip()
    if ":" in text:
        text = _LABEL.sub("", text)
    # Refusals that are quoted are no refusals of this answer, unless they are all of it.
    if '"' in text and not _QUOTED.fullmatch(text):
        text = _QUOTED.sub("it", text)
    for spelling, usual in language.replaces:
        text = text.replace(spelling, usual)
    return _NUMBER.sub(r"\1) ", text.replace('"', ""))


def clauses(plain: str, language: LanguagePatterns) -> list[Clause]:
    """The clauses of an answer, each with what it does; none where no clause declines."""
    sentences = _SENTENCE.split(plain)
    # Most answers with a stem in them are no refusals: this is all that is asked of them, and of
    # their sentences that have one.
    stemmed = [sentence for sentence in sentences if _has_stem(sentence, language)]
    if not any(_declines(text, language) for text in _clause_texts(stemmed, language)):
        return []
    texts = _clause_texts(sentences, language)
    declining = [_declines(text, language) for text in texts]
    parts: list[Clause] = []
    declined = False
    for text, kind in zip(texts, declining, strict=True):
        # Items of a list do what the sentence before the list does.
        in_aside = bool(parts) and parts[-1].kind == "aside" and bool(_ITEM.match(text))
        clause = _clause(text, kind, language, declined=declined, in_aside=in_aside)
        declined = declined or clause.kind in _DECLINING
        parts.append(clause)
    return parts


def _clause_texts(sentences: Iterable[str], language: LanguagePatterns) -> list[str]:
    texts: list[str] = []
    for whole in sentences:
        sentence = language.concedes.sub("", whole, 1)
        before = 0
        cuts = [match.start() for match in language.splits.finditer(sentence)]
        for cut in (*cuts, len(sentence)):
            text = sentence[before:cut].strip(" ,;:–—")
            before = cut
            if _WORD.search(text):
                texts.append(text)
    return texts


def _declines(text: str, language: LanguagePatterns) -> ClauseKind | None:
    """Whether a clause declines, or says what the sources lack."""
    if not _has_stem(text, language):
        return None
    if language.declines.search(text):
        return "declines"
    match = language.lacks.search(text)
    lacks = match is not None and not language.unless.search(text, 0, match.end())
    return "lacks" if lacks else None


def _has_any(text: str, characters: str) -> bool:
    for character in characters:  # noqa: SIM110  (as below)
        if character in text:
            return True
    return False


def _has_stem(text: str, language: LanguagePatterns) -> bool:
    for stem in language.stems:  # noqa: SIM110  (`any` with a generator takes twice as long)
        if stem in text:
            return True
    return False


def _clause(
    text: str,
    kind: ClauseKind | None,
    language: LanguagePatterns,
    *,
    declined: bool,
    in_aside: bool,
) -> Clause:
    """A clause with what it does; `declined`: one before it declines."""
    supposes = language.supposes.match(text) is not None
    answers = not supposes and language.answers.search(text) is not None
    if answers:
        kind = "says"
    elif supposes or (
        kind is None
        and (in_aside or language.opens.search(text) or (declined and language.asides.search(text)))
    ):
        kind = "aside"
    kind = kind or "says"
    if kind == "says" and language.results.match(text):
        answers = True
    return Clause(
        text,
        kind,
        language.turns.match(text) is not None,
        language.concludes.match(text) is not None,
        answers,
    )


def _declining(parts: Sequence[Clause]) -> bool:
    """Whether clauses together decline to answer."""
    kinds = [part.kind for part in parts]
    declining = [place for place, kind in enumerate(kinds) if kind in _DECLINING]
    if not declining:
        return False
    if "says" not in kinds:
        return True
    if any(part.answers for part in parts):
        return False
    first = next(place for place, kind in enumerate(kinds) if kind != "aside")
    if kinds[first] == "declines" and _leads(parts[first:]):
        return True
    # What was said may lead to a conclusion that declines.
    last = max((place for place in declining if kinds[place] == "declines"), default=-1)
    if last < 0 or "says" in kinds[last:]:
        return False
    return parts[last].concludes or (kinds[first] != "says" and last == declining[-1])


def _leads(parts: Sequence[Clause]) -> bool:
    """Whether an answer that begins by declining goes on without answering.

    Advice comes next, and what is said among it explains; an answer would come at once, or begin
    with a word such as "however".
    """
    behind = [part for part in parts if part.kind != "declines"]
    if any(part.kind == "says" and part.turns for part in behind):
        return False
    return not behind or behind[0].kind != "says"
