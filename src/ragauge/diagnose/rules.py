"""Rules: likely causes as a table, and what a rule can ask of a run.

What is far in ΔS is said by the bands of the embedder. Distances of several embedders are not read
together; how far is far is not asked of those that compare words, nor of a sweep whose lists end
at five. A question that came out right is no evidence of a fault in the index. Where there is a
baseline, rules about an index ask what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from ragauge.diagnose.hit_facts import HitFacts
from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.model.diagnosis import Number
from ragauge.model.error_reasons import counted_reasons
from ragauge.model.labels import GOOD
from ragauge.model.phrases import count
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands, is_lexical
from ragauge.stats import exact_sums
from ragauge.text import some

SLACK = 1e-9
"""A difference of two means may be off by its last bit, and 1.0 - 0.8 is less than 0.2."""

PRECISION, CITED, UNDER, OVER = 0.80, 0.75, 0.05, 0.10
"""The ship gates."""

RERANK_FROM = 0.85
"""Evidence must be in the first fifty hits this often before a reranker is worth its cost."""

TYPE_GAP = 0.20
"""A type whose evidence is found so much less often than prose has lost its typing. Own choice:
the pages name the symptom and no number."""

FLAT = 0.05
FALLING = 0.10
"""Flat and falling are numbers of our own: the pages say flat, high and sharp."""

FARTHER = 0.10
"""How much farther all hits of a list are when index and queries no longer match."""

REVERSED = -0.30
"""Kendall's tau of rank and ΔS where the farthest come first. An index that ranks by the embedder
has 1, one that ranks by words between 0.1 and 0.5, one in no order 0."""

WHOLE = 0.90
"""A chunk that holds less of its evidence, or of its former text, was cut."""

MANY = 0.20
"""A change in so many chunks, or in so much of a list, is no edit."""

LEAST_LISTS = 3
"""A document that so many questions expect, or lists had, does not stay away by chance."""

_COSINE_SLACK = 1e-3
NEARNESS = "tau of rank and ΔS"

_REASONS = 5
"""Reasons of errors that are listed with their counts."""

TAU = 0.60
SAME_CITATIONS = 0.70
SAME_WORDS = 0.20

_EVIDENCE_WAS_THERE = (None, "retrieved-not-cited", "out-of-scope-citation", "cited-wrong-offsets")
"""Causes that are not of retrieval."""

_RECALL, _HIT = "retrieval.recall@5", "retrieval.hit@"
_PRECISION, _CITED = "answer.grounded_precision", "citation.hit_rate"
_FIRST, _DEEP = "semantic.delta_s_hits@5", "semantic.delta_s_hits@20"
_DELTA_S_CITED = "semantic.delta_s_cited"
_CONVERGENT = "stability.convergent"


class Symptoms:
    """The scores of a run as rules ask them; `types` says which questions have which evidence.

    `hits` are what its lists of hits show, `before` the run that it is compared with.
    """

    def __init__(
        self,
        scores: Scores,
        types: Mapping[str, Ints] | None = None,
        *,
        hits: HitFacts | None = None,
        before: Symptoms | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        self.scores = scores
        self.types = types or {}
        self.hits = hits
        self.before = before

    @cached_property
    def keys(self) -> list[tuple[str, int | None]]:
        """The questions by id and turn."""
        values = self.scores.per_question
        if values is None:
            return []
        return list(zip(values.qids, values.turns, strict=True))

    @cached_property
    def earlier(self) -> Ints:
        """Where each question is in the baseline; -1 where it has none."""
        places: dict[tuple[str, int | None], int] = {}
        if self.before is not None:
            places = {key: place for place, key in enumerate(self.before.keys)}
        return np.array([places.get(key, -1) for key in self.keys], np.int64)

    def changed(self, of_run: Callable[[Symptoms], Floats | None]) -> tuple[Floats, Floats]:
        """A number of each question now and in the baseline; nan where one of them has none."""
        now, then = of_run(self), None if self.before is None else of_run(self.before)
        if now is None or then is None:
            return np.full(self.size, np.nan), np.full(self.size, np.nan)
        earlier = np.append(then, np.nan)[self.earlier]
        known = ~np.isnan(now) & ~np.isnan(earlier)
        return np.where(known, now, np.nan), np.where(known, earlier, np.nan)

    def hit_fact(self, name: str) -> Floats:
        """A fact about the hits of each question; nan where hits were not looked at."""
        if self.hits is None:
            return np.full(self.size, np.nan)
        values: Floats = getattr(self.hits, name)
        return values

    @cached_property
    def suffering(self) -> Bools:
        """The questions that went wrong: those with a cause, or a bad label."""
        fine = {*GOOD, "UNLABELLED", "NO_ANSWER"}
        questions = self.scores.questions
        pairs = zip(questions.labels, questions.causes, strict=True)
        return np.array(
            [label not in fine or cause is not None for label, cause in pairs], np.bool_
        )

    @property
    def size(self) -> int:
        """How many questions there are."""
        return len(self.scores.questions)

    def value(self, metric: str) -> float | None:
        """The value of a metric over the run; None where it has none."""
        result = self.scores.metrics.get(metric)
        return None if result is None else result.value

    def of(self, metric: str) -> Floats:
        """The value of a metric for each question, nan where it has none."""
        values = self.scores.per_question
        if values is None or metric not in values.metrics:
            return np.full(self.size, np.nan)
        return values.of(metric)

    def number(self, metric: str, reading: str = "") -> Number:
        """The metric as a number behind a finding."""
        result = self.scores.metrics.get(metric)
        return Number(
            name=metric,
            value=self.value(metric),
            n=0 if result is None else result.n,
            reading=reading,
        )

    def count(self, name: str, places: Ints, reading: str = "") -> Number:
        """A number of questions, of all."""
        return Number(name=name, value=float(len(places)), n=self.size, reading=reading, whole=True)

    @cached_property
    def _labels(self) -> Sequence[str]:
        return self.scores.questions.labels

    def labelled(self, *labels: str) -> Ints:
        """The questions with one of these labels, in gold order."""
        return _places([label in labels for label in self._labels])

    def caused(self, cause: str, *, unless: str = "") -> Ints:
        """The questions with this cause, those with most slots of it first."""
        causes = self.scores.questions.causes
        places = _places(
            [
                question_cause == cause and label != unless
                for question_cause, label in zip(causes, self._labels, strict=True)
            ]
        )
        return _by(places, [-self._share(place, cause) for place in places.tolist()])

    def _share(self, place: int, cause: str) -> float:
        question = self.scores.questions[place]
        return question.causes.get(cause, 0) / max(1, sum(question.labels.values()))

    def where(self, metric: str, holds: Callable[[Floats], Bools], *, worst: str = "low") -> Ints:
        """The questions whose value of a metric is such; the lowest (or highest) first."""
        values = self.of(metric)
        measured = np.flatnonzero(~np.isnan(values))
        places = measured[holds(values[measured])]
        keys = values[places] if worst == "low" else -values[places]
        return _by(places, keys.tolist())

    def hit_mean(self, name: str) -> float | None:
        """The mean of a fact about hits, over the questions that have it."""
        values = self.hit_fact(name)
        values = values[~np.isnan(values)]
        return exact_sums.mean(values) if len(values) else None

    def hit_number(self, name: str, title: str, reading: str = "") -> Number:
        """The mean of a fact about hits as a number behind a finding."""
        n = int((~np.isnan(self.hit_fact(name))).sum())
        return Number(name=title, value=self.hit_mean(name), n=n, reading=reading)

    def mean(self, metric: str, places: Ints) -> tuple[float | None, int]:
        """The mean of a metric over some questions, and over how many of them it is."""
        values = self.of(metric)[places]
        values = values[~np.isnan(values)]
        return (exact_sums.mean(values) if len(values) else None), len(values)


def _places(holds: Sequence[bool]) -> Ints:
    return np.flatnonzero(np.array(holds, np.bool_)).astype(np.int64)


def _by(places: Ints, keys: Sequence[float]) -> Ints:
    """The places in the order of their keys, equal ones as they stand."""
    order = np.argsort(np.array(keys, np.float64), kind="stable")
    return places[order]


INDEX, SEARCH, RANKING, CITATION, ANSWER, SYMPTOM = range(6)
"""How early a cause acts. An index that is wrong shows in everything that comes after it."""


class DiagnosisRule(Struct, frozen=True, kw_only=True):
    """A likely cause, and what must be so for it to be claimed.

    find       the questions that suffer from it, the worst first; none, and it is not claimed
    numbers    the metrics that speak for it, each with how it is read
    figures    what is shown instead of the numbers alone
    step       what to do next
    source     the page whose table of symptoms it comes from
    of_run     it is claimed of the run, even where no question shows it
    level      how early it acts: what an earlier one accounts for comes after it
    facts      the facts about hits that it looks at, where it asks no metric
    """

    id: str
    title: str
    source: str
    find: Callable[[Symptoms], Ints | None]
    numbers: Mapping[str, str]
    step: str | Callable[[Symptoms, Ints], str]
    figures: Callable[[Symptoms, Ints], tuple[Number, ...]] | None = None
    blocking: bool = False
    of_run: bool = False
    level: int = SYMPTOM
    facts: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The metrics that must be measured for it."""
        return tuple(self.numbers)

    def affected(self, run: Symptoms) -> Ints | None:
        """The questions that it is claimed of, the worst first; None where it is not claimed."""
        places = self.find(run)
        return places if places is not None and (len(places) or self.of_run) else None

    def shown_numbers(self, run: Symptoms, places: Ints) -> tuple[Number, ...]:
        """The numbers that speak for it in a run."""
        if self.figures is not None:
            return self.figures(run, places)
        bands = bands_of(run.scores)
        return tuple(
            run.number(metric, reading.format(bands=bands))
            for metric, reading in self.numbers.items()
        )


def bands_of(scores: Scores) -> Bands:
    """The bands of the embedder, or those of the source documents where it has none."""
    return Bands() if scores.semantic is None else scores.semantic.bands


def unread(scores: Scores) -> str | None:
    """Why nothing is concluded from the ΔS of a run; None where it is read."""
    if len(scores.embedders) > 1:
        return "it comes from several embedders"
    lexical = [embedder for embedder in scores.embedders if is_lexical(embedder)]
    return f"{lexical[0]} compares words, not meanings" if lexical else None


def delta_s_notes(scores: Scores) -> list[str]:
    """What is not looked for although there is ΔS; several embedders are a finding themselves."""
    why = unread(scores) if len(scores.embedders) == 1 else None
    if why is None:
        return []
    names = ", ".join(rule.id for rule in DELTA_S_RULES)
    return [f"of ΔS only changes against a baseline are read, as {why}: {names}"]


def _several_embedders(run: Symptoms) -> Ints | None:
    if len(run.scores.embedders) < 2:
        return None
    return run.where("semantic.delta_s_hits", lambda v: v >= 0, worst="high")


def _empty_step(run: Symptoms, _places: Ints) -> str:
    if run.value("retrieval.empty") == 1.0:
        return "No trace has a hit. Log what was retrieved, or nothing can be said of retrieval."
    return (
        "Read the indexer's log and ask for one of these questions by hand: a failed ingest "
        "and a wrong namespace both look like this."
    )


def _low_step(run: Symptoms, _places: Ints) -> str:
    deep = run.value(f"{_HIT}50")
    if deep is not None and deep >= RERANK_FROM:
        return "Rerank: the evidence is in the candidates often enough for a reranker to find it."
    return "Widen the candidates first: below 0.85 a reranker has too little to work with."


def _types_below_prose(run: Symptoms) -> tuple[tuple[Number, ...], set[int]]:
    """The recall of prose and of types far below it, and the questions of those types."""
    least = run.scores.options.min_n
    prose, n = run.mean(_RECALL, run.types.get("prose", np.zeros(0, np.int64)))
    if prose is None or n < least:
        return (), set()
    numbers = [Number(name=f"{_RECALL}, prose", value=prose, n=n)]
    of_lost_types: set[int] = set()
    for name, places in sorted(run.types.items()):
        mean, size = run.mean(_RECALL, places)
        if name == "prose" or mean is None or size < least or prose - mean < TYPE_GAP - SLACK:
            continue
        reading = f"{TYPE_GAP:.2f} or more below prose"
        numbers.append(Number(name=f"{_RECALL}, {name}", value=mean, n=size, reading=reading))
        of_lost_types.update(places.tolist())
    return tuple(numbers), of_lost_types


def _untyped(run: Symptoms) -> Ints | None:
    _, of_lost_types = _types_below_prose(run)
    short = run.where(_RECALL, lambda v: v < 1).tolist() if of_lost_types else []
    return np.array([place for place in short if place in of_lost_types], np.int64)


def _sweep(run: Symptoms) -> tuple[float, float] | None:
    """ΔS of the first five and twenty hits, where the lists are longer than five."""
    first, deep = run.value(_FIRST), run.value(_DEEP)
    if first is None or deep is None or unread(run.scores) is not None:
        return None
    # Where lists end at five both values are the same by construction, which would look flat.
    deeper = run.of(_FIRST) != run.of(_DEEP)
    return (first, deep) if bool((deeper & ~np.isnan(run.of(_DEEP))).any()) else None


def _only_suffering(run: Symptoms, places: Ints) -> Ints:
    return places[run.suffering[places]]


def _is_common(holds: Bools, known: Bools) -> bool:
    """Whether something holds of at least half of the questions of which it is known."""
    return bool(known.any()) and 2 * int((holds & known).sum()) >= int(known.sum())


def _mismatched(run: Symptoms) -> Ints | None:
    """Far at any depth, by the bands; beside a baseline, farther than there, and in no order."""
    before = run.before
    if before is None or before.scores.embedders != run.scores.embedders:
        sweep, risk = _sweep(run), bands_of(run.scores).risk
        if sweep is None or sweep[0] < risk or abs(sweep[1] - sweep[0]) > FLAT + SLACK:
            return None
        return _only_suffering(run, run.where(_FIRST, lambda v: v >= risk, worst="high"))
    now, then = run.changed(lambda one: one.of(_DEEP))
    nearness, ordered = run.changed(lambda one: one.hit_fact("nearness"))
    known = ~np.isnan(now) & ~np.isnan(nearness)
    # A reranker that errs keeps its candidates; another index still has the nearest first.
    farther = known & (now - then >= FARTHER - SLACK)
    if not _is_common(farther, known):
        return None
    if abs(float(np.mean(nearness[known]))) > float(np.mean(ordered[known])) / 2:
        return None
    return _only_suffering(run, _by(np.flatnonzero(farther), (-now[farther]).tolist()))


def _mismatch_numbers(run: Symptoms, _places: Ints) -> tuple[Number, ...]:
    risk = bands_of(run.scores).risk
    return (
        run.number(_FIRST, f"far: {risk:.2f} or more, or {FARTHER:.2f} more than in the baseline"),
        run.number(_DEEP, f"flat: within {FLAT:.2f} of the first"),
        run.hit_number("nearness", NEARNESS, "0: in no order"),
    )


def _reversed(run: Symptoms) -> Ints | None:
    """ΔS falls along the lists, or scores run in the other direction than in the baseline."""
    nearness = run.hit_fact("nearness")
    known = ~np.isnan(nearness)
    # Words alone may well be rarer in the best text; what counts then is that it was otherwise.
    readable = unread(run.scores) is None or run.before is not None
    if readable and _is_common(nearness <= REVERSED, known):
        places = np.flatnonzero(known & (nearness < 0))
        return _only_suffering(run, _by(places, nearness[places].tolist()))
    now, then = run.changed(lambda one: one.hit_fact("falling"))
    turned = (now * then < 0) & (np.abs(now) > 0.5) & (np.abs(then) > 0.5)
    if not _is_common(turned, ~np.isnan(now)):
        return None
    return _only_suffering(run, np.flatnonzero(turned))


def _too_long(run: Symptoms) -> Ints | None:
    """Scores that no cosine has, and hits that are longer than they were."""
    hits = run.hits
    if hits is None:
        return None
    highest, then = run.changed(lambda one: one.hit_fact("highest"))
    known = ~np.isnan(highest)
    was_cosine = bool(known.any()) and bool((then[known] <= 1 + SLACK).all())
    is_cosine = any("cos" in metric for metric in hits.metrics)
    if not was_cosine and not is_cosine:
        return None
    if is_cosine:
        highest = run.hit_fact("highest")
    beyond: Bools = np.nan_to_num(highest) > 1 + _COSINE_SLACK
    length, earlier = run.changed(lambda one: one.hit_fact("length"))
    both = ~np.isnan(length)
    # Longer vectors win, and long texts have them; a score of another kind favours nobody.
    longer = not both.any() or float(np.median(length[both])) > float(np.median(earlier[both]))
    if not _is_common(beyond, ~np.isnan(highest)) or not longer:
        return None
    places = _only_suffering(run, np.flatnonzero(beyond))
    return _by(places, (-np.nan_to_num(highest[places])).tolist())


def _length_numbers(run: Symptoms, _places: Ints) -> tuple[Number, ...]:
    return (
        run.hit_number("highest", "highest score", "a cosine is at most 1"),
        run.hit_number("length", "bytes of the first five hits", "longer: long texts win"),
    )


def _documents_missing(run: Symptoms) -> Ints | None:
    """Questions whose document appears in no list, although several should or did have it."""
    hits = run.hits
    if hits is None or not hits.docs:
        return None
    wanted: dict[str, int] = {}
    for docs in hits.wanted_docs:
        for doc in docs:
            wanted[doc] = wanted.get(doc, 0) + 1
    before = None if run.before is None else run.before.hits
    absent = {
        doc
        for doc, questions in wanted.items()
        if doc not in hits.docs
        and (questions if before is None else before.docs.get(doc, 0)) >= LEAST_LISTS
    }
    if absent == wanted.keys():
        return None  # the names of documents differ between gold and traces
    return _places([not absent.isdisjoint(docs) for docs in hits.wanted_docs])


def _document_numbers(run: Symptoms, places: Ints) -> tuple[Number, ...]:
    hits = run.hits
    assert hits is not None
    docs = sorted({doc for place in places.tolist() for doc in hits.wanted_docs[place]})
    absent = [doc for doc in docs if doc not in hits.docs]
    return (
        Number(
            name="documents in no list of hits",
            value=float(len(absent)),
            n=len(docs),
            reading=some(absent),
            whole=True,
        ),
        run.number(_RECALL),
    )


def _cut(run: Symptoms) -> Ints | None:
    """Evidence that was found by its id and is not whole, or chunks shorter than they were."""
    hits = run.hits
    if hits is None:
        return None
    covered = run.hit_fact("covered")
    cut = np.nan_to_num(covered, nan=1.0) < WHOLE - SLACK
    if run.before is not None and run.before.hits is not None:
        _, earlier = run.changed(lambda one: one.hit_fact("covered"))
        cut &= ~(earlier < WHOLE - SLACK)  # chunks that never held all of the evidence
        shorter, common = hits.shorter_than(run.before.hits, WHOLE - SLACK)
        # Some chunks of an edited corpus are shorter; many are, where all are cut.
        if shorter and len(shorter) >= MANY * common:
            cut |= np.array([not shorter.isdisjoint(ids) for ids in hits.chunks_of], np.bool_)
    return np.flatnonzero(cut)


def _cut_numbers(run: Symptoms, _places: Ints) -> tuple[Number, ...]:
    return (
        run.hit_number("covered", "share of the evidence that its hit holds", "1: whole"),
        run.hit_number("length", "bytes of the first five hits"),
    )


def _filtered(run: Symptoms) -> Ints | None:
    """Lists that are shorter than before while others are full; or closer text further down."""
    now, then = run.changed(lambda one: one.hit_fact("count"))
    hits, before = run.hits, None if run.before is None else run.before.hits
    # All lists as long as each other, and shorter than before: somebody asks for fewer hits.
    if (
        hits is not None
        and before is not None
        and not bool((now[~np.isnan(now)] == hits.longest).all())
    ):
        shorter: Bools = np.nan_to_num(now) < np.nan_to_num(then) * (1 - MANY)
        places = _only_suffering(run, np.flatnonzero(shorter))
        if len(places):
            return _by(places, (now[places] - then[places]).tolist())
    sweep = _sweep(run)
    if sweep is None or sweep[0] - sweep[1] < FALLING - SLACK:
        return None
    return _only_suffering(run, run.where(_FIRST, lambda v: v > sweep[1], worst="high"))


def _filter_numbers(run: Symptoms, _places: Ints) -> tuple[Number, ...]:
    return (
        run.hit_number("count", "hits of a list", "fewer than before: something is taken away"),
        run.number(_FIRST),
        run.number(_DEEP, f"{FALLING:.2f} or more below the first"),
    )


def _far(run: Symptoms) -> Ints | None:
    risk = bands_of(run.scores).risk
    far = run.where(_DELTA_S_CITED, lambda v: v >= risk, worst="high")
    return _only_suffering(run, far) if unread(run.scores) is None else None


def _below(name: str, least: float) -> Callable[[Symptoms], Ints | None]:
    """The questions whose seeds agree less than this, the least first."""

    def find(run: Symptoms) -> Ints:
        values = run.hit_fact(name)
        places = np.flatnonzero(np.nan_to_num(values, nan=1.0) < least)
        return _by(places, values[places].tolist())

    return find


def _above(name: str, most: float) -> Callable[[Symptoms], Ints | None]:
    """The questions whose seeds differ more than this, the most first."""

    def find(run: Symptoms) -> Ints:
        values = run.hit_fact(name)
        places = np.flatnonzero(np.nan_to_num(values) > most)
        return _by(places, (-values[places]).tolist())

    return find


def _without_citations(run: Symptoms) -> Ints | None:
    if run.scores.cites or not run.scores.tally.answered:
        return None
    return run.where("answer.compliance", lambda v: ~np.isnan(v))


def _unretrieved(run: Symptoms) -> Ints | None:
    if run.value("retrieval.empty") == 1.0:
        return None  # no hit was recorded, so nothing is known to be missing among them
    # What a refusal cites is no answer.
    refused = {*run.labelled("REFUSAL_OK", "OVER_REFUSAL").tolist()}
    outside = run.where("citation.in_context", lambda v: v < 1).tolist()
    return np.array([place for place in outside if place not in refused], np.int64)


def _unretrieved_numbers(run: Symptoms, places: Ints) -> tuple[Number, ...]:
    missed = places[run.of("retrieval.hit@50")[places] == 0]
    return (
        run.number("citation.in_context"),
        run.number("citation.resolved", "below 1: ids that no hit of the run has"),
        run.count("cites so, no evidence in top 50", missed, "retrieval missed it too"),
    )


def _unretrieved_step(run: Symptoms, _places: Ints) -> str:
    resolved = run.value("citation.resolved")
    if resolved is not None and resolved < 1:
        return (
            "Some cited ids are nowhere in the run. After a rebuild, redirect the old ids: "
            "`ragauge corpus diff OLD NEW` writes the map, `ragauge traces migrate` applies it."
        )
    return (
        "Refuse answers that cite an id which was not in their context: it was made up, or "
        "remembered from another turn."
    )


def _ungrounded(run: Symptoms) -> Ints | None:
    precision, cited = run.value(_PRECISION), run.value(_CITED)
    if precision is None or cited is None or precision >= PRECISION or cited >= CITED:
        return None
    wrong = run.labelled("ANS_NO_HIT", "OUT_OF_SCOPE")
    causes = run.scores.questions.causes
    return wrong[[causes[place] in _EVIDENCE_WAS_THERE for place in wrong.tolist()]]


def _refused_with_evidence(run: Symptoms, places: Ints) -> Ints:
    causes = run.scores.questions.causes
    return places[[causes[place] == "retrieved-not-cited" for place in places.tolist()]]


def _refused_step(run: Symptoms, places: Ints) -> str:
    if 2 * len(_refused_with_evidence(run, places)) < len(places):
        return (
            "Retrieve more before ranking: most of these refused because the evidence was not "
            "among the first five hits."
        )
    return "Loosen the template: most of these had the evidence in front of them and refused."


def _flips_step(run: Symptoms, _places: Ints) -> str:
    tau = run.hit_mean("tau")
    if tau is None or tau < TAU:
        return "Fix retrieval first: two calls with one wording retrieve different text."
    return (
        "Fix the prompt: the hits agree, the answers do not. Keep system text, task, "
        "constraints, citations and answer in one order, and pin the seed."
    )


def _error_numbers(run: Symptoms, _places: Ints) -> tuple[Number, ...]:
    errors, n = run.scores.errors, run.scores.tally.scored
    reasons = list(errors.items())[:_REASONS]
    return (
        run.number("run.errored"),
        *(
            Number(name="errors of one reason", value=float(times), n=n, reading=reason, whole=True)
            for reason, times in reasons
        ),
    )


def _errors_step(run: Symptoms, _places: Ints) -> str:
    errors = run.scores.errors
    total = count(sum(errors.values()), "error")
    listed = f"{total}: {counted_reasons(errors)}. " if errors else ""
    return f"{listed}Fix the most frequent cause first, then run these questions again."


# What keeps a run from being measured as a whole: traces that are not there, or mean nothing.
COMPLETENESS_RULES = (
    DiagnosisRule(
        id="missing-traces",
        title="Questions have no trace",
        source="own",
        find=lambda run: run.labelled("MISSING"),
        numbers={"run.missing": ""},
        step="Run these questions, or compare one id of each file: a changed prefix is the usual "
        "cause.",
        blocking=True,
    ),
    DiagnosisRule(
        id="errored-traces",
        title="Traces carry errors",
        source="own",
        find=lambda run: run.labelled("ERRORED"),
        numbers={"run.errored": ""},
        figures=_error_numbers,
        step=_errors_step,
        blocking=True,
    ),
    DiagnosisRule(
        id="mixed-embedders",
        title="ΔS comes from several embedders",
        source="own",
        find=_several_embedders,
        numbers={"semantic.delta_s_hits": ""},
        figures=lambda run, places: (
            run.count(f"questions with ΔS, of {', '.join(run.scores.embedders)}", places),
        ),
        step="Measure ΔS with one embedder. Distances of two cannot be read together, so nothing "
        "is said of distances here.",
        blocking=True,
        of_run=True,
    ),
)

# What may be wrong with retrieval: nothing comes back, the wrong thing does, or too far down.
RETRIEVAL_RULES = (
    DiagnosisRule(
        id="retrieval-empty",
        level=SEARCH,
        title="Nothing is retrieved",
        source="WFGY ops playbook (retrieval empty)",
        find=lambda run: run.where("retrieval.empty", lambda v: v > 0, worst="high"),
        numbers={"retrieval.empty": "the sources accept none"},
        step=_empty_step,
    ),
    DiagnosisRule(
        id="evidence-not-retrieved",
        title="The evidence is never retrieved",
        source="WFGY eval page (recall@k low); fragmentation page",
        find=lambda run: run.caused("retrieval-miss"),
        numbers={_RECALL: "", f"{_HIT}50": "1 less this: evidence that no hit has"},
        step="See whether the index holds the evidence: `ragauge validate GOLD TRACE --corpus DIR` "
        "names ids that the corpus lacks. What is in the corpus and never retrieved was not "
        "ingested, or is filtered away: compare the index with its manifest and rebuild it whole.",
    ),
    DiagnosisRule(
        id="boundaries-bleed",
        level=RANKING,
        title="Near negatives come before the evidence",
        source="WFGY chunking eval page (boundary leaks)",
        find=lambda run: run.caused("negative-preferred"),
        numbers={"retrieval.negative_above": "", "retrieval.negative@5": ""},
        step="Look at where the negatives lie: text of a neighbouring section in one chunk with "
        "the answer's is a boundary in the wrong place. Cut at headings and index again.",
    ),
    DiagnosisRule(
        id="adjacent-block",
        title="The hits lie beside the evidence",
        source="WFGY chunk id page (adjacent section)",
        find=lambda run: run.caused("near-miss-section"),
        numbers={
            "retrieval.anchor_hit@5": "high while recall is low: right section",
            _RECALL: "",
            "citation.anchor_distance": "0 the section, 1 its parent, 2 a sibling",
        },
        step="Tighten the blocks: the right neighbourhood is found and the block is not. If the "
        "retrieved block does answer the question, add it to the gold item's evidence.",
    ),
    DiagnosisRule(
        id="ordering",
        level=RANKING,
        title="The evidence is retrieved, and ranked too low",
        source="WFGY rerankers page",
        find=lambda run: run.caused("ranked-too-low"),
        numbers={
            f"{_HIT}3": "",
            f"{_HIT}20": "high while hit@3 is low: order, not reach",
            f"{_HIT}50": f"rerank from {RERANK_FROM} on",
        },
        step=_low_step,
    ),
    DiagnosisRule(
        id="typing-lost",
        title="Evidence of one type is found less than prose",
        source="WFGY chunking eval page (tables and code)",
        find=_untyped,
        numbers={_RECALL: ""},
        figures=lambda run, _places: _types_below_prose(run)[0],
        step="Keep the type of a block through chunking and ranking: tables and code that are "
        "embedded as prose are found as prose. `ragauge corpus build` shows the types.",
    ),
)

# What may be wrong with the index: seen in the lists of hits, best beside a baseline.
INDEX_RULES = (
    DiagnosisRule(
        id="reversed-order",
        level=INDEX,
        title="The farthest text comes first",
        source="own",
        find=_reversed,
        numbers={},
        facts=("nearness", "falling"),
        figures=lambda run, _places: (
            run.hit_number("nearness", NEARNESS, "1: the nearest first; -1: the farthest"),
            run.hit_number("falling", "tau of rank and score", "1: the highest first"),
        ),
        step="Look at the sign: a similarity sorted as a distance (or a distance as a similarity) "
        "gives the text that fits least. Compare the metric of the index with the sort order.",
    ),
    DiagnosisRule(
        id="vectors-not-normalised",
        level=INDEX,
        title="Vectors are not normalised",
        source="WFGY vector store pages (normalisation)",
        find=_too_long,
        numbers={},
        facts=("highest",),
        figures=_length_numbers,
        step="Scale vectors to length 1 when writing and when asking, or choose the cosine as the "
        "metric: a dot product of other vectors prefers long texts.",
    ),
    DiagnosisRule(
        id="chunks-cut",
        level=INDEX,
        title="Chunks are cut off",
        source="own",
        find=_cut,
        numbers={},
        facts=("covered", "length"),
        figures=_cut_numbers,
        step="Compare a chunk in the index with its document: a field that is too short, or a "
        "longest input of the embedder, cuts the end off. Make the chunks fit, and index again.",
    ),
    DiagnosisRule(
        id="documents-missing",
        level=INDEX,
        title="Documents are not in the index",
        source="own",
        find=_documents_missing,
        numbers={},
        facts=("count",),
        figures=_document_numbers,
        step="Look for these documents in the index and in the log of the ingestion; then ingest "
        "them again. A filter on metadata that they lack looks the same.",
    ),
)

# What distances show: a sweep over k, and cited snippets that are far away.
DELTA_S_RULES = (
    DiagnosisRule(
        id="metric-mismatch",
        level=INDEX,
        title="Index and queries do not match",
        source="WFGY ΔS probes (k sweep flat and high)",
        find=_mismatched,
        numbers={_FIRST: "", _DEEP: ""},
        figures=_mismatch_numbers,
        step="Check that the index and the queries are embedded alike: one model, one version, one "
        "metric. Then build the index again.",
    ),
    DiagnosisRule(
        id="filter-too-strict",
        level=SEARCH,
        title="Something takes hits away",
        source="WFGY ΔS probes (k sweep falling)",
        find=_filtered,
        numbers={_FIRST: "", _DEEP: ""},
        figures=_filter_numbers,
        step="Ask for one of these questions without filters: on metadata that some chunks lack, "
        "they take away what was found. Filter before the search or ask for more, and rerank "
        "after that.",
    ),
    DiagnosisRule(
        id="far-citations",
        title="Cited snippets are far from the question",
        source="WFGY ΔS thresholds (risk zone)",
        find=_far,
        numbers={
            _DELTA_S_CITED: "stable: below {bands.stable:.2f}",
            f"{_DELTA_S_CITED}_p90": "far: {bands.risk:.2f} or more",
        },
        step="Read the cited snippets of these questions. Where they do answer, the bands do not "
        "fit this embedder; where they do not, similarity is mistaken for meaning: rerank.",
    ),
)

# What may be wrong with citations: none, of the wrong bytes, of what nobody retrieved.
CITATION_RULES = (
    DiagnosisRule(
        id="no-citations",
        level=CITATION,
        title="Answers cite nothing",
        source="WFGY chunking eval page (eval without cite-first)",
        find=_without_citations,
        numbers={"answer.compliance": "the share with a list of citations, or a refusal"},
        step="Let the answer name its evidence before it speaks, as ids in a list, and log it. "
        "Until then coverage and citation accuracy cannot be measured.",
        of_run=True,
    ),
    DiagnosisRule(
        id="evidence-ignored",
        title="The evidence is retrieved, and not cited",
        source="WFGY ops playbook (CHR drop, retrieval fine)",
        find=lambda run: run.caused("retrieved-not-cited", unless="OVER_REFUSAL"),
        numbers={
            f"{_HIT}5": "high while citations miss: retrieval is not it",
            "citation.hit_rate_answerable": "",
        },
        step="Look at the prompt of these questions: is the evidence in it, with its id? Allow "
        "citations of listed ids only, and answer from cited text only.",
    ),
    DiagnosisRule(
        id="offsets-drift",
        level=CITATION,
        title="The right place is cited by wrong offsets",
        source="WFGY chunking eval page (right section, wrong offsets)",
        find=lambda run: run.caused("cited-wrong-offsets"),
        numbers={
            "citation.accuracy": "canary: 0.95 at least",
            "answer.coverage": "high while accuracy is low: right section",
        },
        step="Compare the text that offsets were taken from with the text that gold was pinned "
        "to: another normaliser or tokenizer moves them. Freeze it and make the offsets again.",
    ),
    DiagnosisRule(
        id="unretrieved-citations",
        level=CITATION,
        title="Something is cited that was not retrieved",
        source="WFGY eval page (citations within hits); reindex page",
        find=_unretrieved,
        numbers={"citation.in_context": "", "citation.resolved": ""},
        figures=_unretrieved_numbers,
        step=_unretrieved_step,
    ),
)

# What may be wrong with answers: what they say, and when they refuse.
ANSWER_RULES = (
    DiagnosisRule(
        id="claims-miss",
        level=ANSWER,
        title="Answers cite the evidence, and say something else",
        source="WFGY eval page (precision low, CHR high)",
        find=lambda run: run.caused("claim-missing"),
        numbers={
            _PRECISION: f"ship: {PRECISION:.2f} at least",
            _CITED: "high while precision is low: the evidence is cited",
        },
        step="Read claim and gold side by side. A right claim in other words needs another "
        "substring in the gold item; a wrong one needs a schema that asks for the fact itself.",
    ),
    DiagnosisRule(
        id="grounding-broken",
        title="Answers do not rest on the evidence",
        source="WFGY eval page (precision low, CHR low)",
        find=_ungrounded,
        numbers={
            _PRECISION: f"below {PRECISION:.2f}",
            _CITED: f"below {CITED:.2f} too: grounding, not wording",
        },
        step="Answer from evidence only: a template that knows nothing else, and candidates that "
        "both retrievers agree on.",
    ),
    DiagnosisRule(
        id="under-refusal",
        level=ANSWER,
        title="Questions without an answer are answered",
        source="WFGY eval page (under-refusal high)",
        find=lambda run: run.labelled("HALLUCINATION"),
        numbers={"refusal.under": f"ship and smoke: {UNDER:.2f} at most"},
        step="Read these answers against the corpus. If it does hold the answer, the gold item is "
        "wrong; if not, make the refusal the rule wherever no cited text says it.",
    ),
    DiagnosisRule(
        id="over-refusal",
        level=ANSWER,
        title="Questions with an answer are refused",
        source="WFGY eval page and example 08 (over-refusal high)",
        find=lambda run: run.labelled("OVER_REFUSAL"),
        numbers={"refusal.over": ""},
        figures=lambda run, places: (
            run.count("refused with evidence in top 5", _refused_with_evidence(run, places)),
            run.number("refusal.over", f"ship: {OVER:.2f} at most; smoke: 0.25"),
        ),
        step=_refused_step,
    ),
)

# What may be wrong between calls: the same question in the same words, with another seed. Other
# words are another query; that they retrieve other text is no fault of the system's order.
STABILITY_RULES = (
    DiagnosisRule(
        id="order-flips",
        level=SEARCH,
        title="Hits change places between calls",
        source="WFGY chunking eval page (order flips); reranker checklist",
        find=_below("tau", TAU),
        numbers={},
        facts=("tau",),
        figures=lambda run, _places: (
            run.hit_number("tau", "tau of hits, seeds of one wording", f"{TAU:.2f} at least"),
        ),
        step="Sort what comes back from several places, break ties by id and pin the reranker's "
        "seed, so that the same hits stand in the same order.",
    ),
    DiagnosisRule(
        id="outcome-flips",
        title="The outcome depends on the seed",
        source="WFGY ΔS probes (λ flips)",
        find=_above("flips", 0),
        numbers={},
        facts=("flips",),
        figures=lambda run, _places: (
            run.hit_number("flips", "a wording hits with one seed only", "0 at best"),
            run.number(_CONVERGENT, "canary: 0.95 at least"),
            run.hit_number("tau", "tau of hits, seeds of one wording", f"steady from {TAU:.2f} on"),
        ),
        step=_flips_step,
    ),
    DiagnosisRule(
        id="citations-vary",
        title="Calls with one wording cite different text",
        source="WFGY semantic stability page (CSS)",
        find=_below("citations", SAME_CITATIONS),
        numbers={},
        facts=("citations",),
        figures=lambda run, _places: (
            run.hit_number(
                "citations", "citations that all seeds share", f"{SAME_CITATIONS:.2f} at least"
            ),
        ),
        step="Look for near duplicates among the cited blocks: remove them from the index, and "
        "hand fewer hits to the answer.",
    ),
    DiagnosisRule(
        id="claims-vary",
        title="Calls with one wording say different things",
        source="WFGY semantic stability page (NED50, RCR)",
        find=_above("claims", SAME_WORDS),
        numbers={},
        facts=("claims",),
        figures=lambda run, _places: (
            run.hit_number(
                "claims", "distance of claims, seeds of one wording", f"{SAME_WORDS:.2f} at most"
            ),
        ),
        step="Ask for the claim in a fixed schema and pin the temperature: the wording changes "
        "from call to call. Where λ is → all the same, only the wording does.",
    ),
)

RULES = (
    *COMPLETENESS_RULES,
    *INDEX_RULES,
    *RETRIEVAL_RULES,
    *DELTA_S_RULES,
    *CITATION_RULES,
    *ANSWER_RULES,
    *STABILITY_RULES,
)
"""In the order in which an answer is made, which decides between equals."""
