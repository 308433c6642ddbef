"""Options: readings of the specification that a user may choose; every report records them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

CitationMode = Literal["within", "endpoints", "overlap"]
RefusalRule = Literal["token", "natural"]
RefusalLanguage = Literal["en", "de", "fr", "es"]
CITATION_MODES: tuple[CitationMode, ...] = ("within", "endpoints", "overlap")


class Options(Struct, frozen=True, kw_only=True):
    """What may be read in more than one way.

    citation_mode    when a cited span agrees with a gold span: `within`, it lies inside the gold
                     span widened by the window and overlaps it; `endpoints`, both ends are no
                     further apart than the window; `overlap`, it overlaps the widened span
    citation_window  that many bytes on each side
    ignore_case      whether `must_contain` and `forbidden` ignore case
    relevance_level  the lowest grade that counts as relevant
    min_n            below that many questions a slice shows its n and no value
    missing          whether missing and errored traces count in retrieval metrics, or are excluded
    refusal_rule     what counts as a refusal, whatever the profile says: `token`, the exact token
                     alone; `natural`, flags, the token, the patterns below, and the built-in ones
    refusal_patterns patterns that also count as a refusal; with any, the rule is `natural`
    refusal_languages
                     the languages of the built-in patterns
    chunks           a digest of the list of chunks that gave places to ids, if there was one
    overlap          who must cover half of a place that is evidence: the hits up to a rank
                     together (`cumulative`), or one hit by itself (`single`)
    least_evidence   bytes of the shortest evidence that may stand in a chunk that gold names
    """

    citation_mode: CitationMode = "within"
    citation_window: int = 30
    ignore_case: bool = False
    relevance_level: float = 1
    min_n: int = 5
    missing: Literal["count", "exclude"] = "count"
    refusal_rule: RefusalRule | None = None
    refusal_patterns: tuple[str, ...] = ()
    refusal_languages: tuple[RefusalLanguage, ...] = ("en",)
    chunks: str | None = None
    overlap: Literal["cumulative", "single"] = "cumulative"
    least_evidence: int = 40
