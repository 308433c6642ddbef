"""Input checks: what gold and traces lack, so that numbers mean less than they seem to, or nothing.

A zero is only worth printing where something else could have been measured. What makes numbers
mean less is said in a sentence before any of them; what makes them mean nothing blocks the verdict,
with or without gates, and says the reason and the cure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from msgspec.structs import replace

from ragauge.formats.unread_fields import FieldUse
from ragauge.model.placement import Placing
from ragauge.model.profile import JoinRules
from ragauge.model.scores import MetricResult
from ragauge.model.verdict import VerdictBlock
from ragauge.scoring.gold_table import GoldLabels, GoldTable
from ragauge.scoring.sums import Totals
from ragauge.scoring.tasks.asked_questions import QuestionTally
from ragauge.scoring.tasks.job import NamedHits
from ragauge.scoring.trace_columns import GoldKeys

FEWEST_FOREIGN = 3
FOREIGN_SHARE = 0.05
"""So many traces, and more than this share of those that say their question, may be a slip."""
FEWEST_UNMATCHED = 3
"""Questions with evidence and hits below which a run may have found nothing, and by right.

Not where hits are texts alone: those can never be called as gold calls its evidence.
"""
NOTHING_FOUND = ("nothing-placed", "ids-never-match")
"""Blocks of runs whose hits cannot be recognised: that no evidence is among them says nothing."""

_NEEDS_EVIDENCE_OR_CITATIONS = frozenset(
    ("answer.precision", "answer.grounded_precision", "answer.coverage", "answer.compliance")
)


# --- what makes numbers mean less ---


def gold_cautions(
    labels: GoldLabels | None,
    totals: Totals,
    metrics: Mapping[str, MetricResult],
    rules: JoinRules,
) -> list[str]:
    """What gold items do not say, where something could have been measured by it."""
    if labels is None:
        return []
    cautions = []
    # A profile may take from the evidence that an item is to be answered, or count its silence.
    asked_for = rules.unlabelled in ("creditable", "unanswerable") or any(
        "unlabelled" in result.excluded for result in metrics.values()
    )
    if asked_for and not labels.expecting and not totals.answerable and totals.spoken:
        cautions.append(
            "no gold item has `answerable`: whether it was right to answer or to refuse is not "
            "measured"
        )
    bare, to_answer = labels.without_evidence, labels.to_answer
    by_evidence = any(name.startswith(("retrieval.", "citation.")) for name in metrics)
    if by_evidence and 2 * bare > to_answer:
        if bare == to_answer:
            cautions.append(
                "no gold item names evidence: whether what was retrieved and cited is right is not "
                f"measured{_counted_anyway(metrics)}"
            )
        else:
            cautions.append(
                f"{bare:,} of {to_answer:,} gold items that are to be answered name no evidence: "
                f"retrieval and citations are measured on the other {to_answer - bare:,}"
                f"{_counted_anyway(metrics)}"
            )
    return cautions


_OVER_ANSWERS = ("answer.precision", "citation.hit_rate", "citation.hit_rate_answerable")


def _counted_anyway(metrics: Mapping[str, MetricResult]) -> str:
    """Which metrics have answers without evidence in their population, by their definitions."""
    counted = [name for name in _OVER_ANSWERS if name in metrics and metrics[name].n]
    if not counted:
        return ""
    return (
        f"; {', '.join(counted)} count{'s' if len(counted) == 1 else ''} such answers all the same"
    )


_BY_CITATIONS = (
    "answer.precision",
    "answer.grounded_precision",
    "answer.compliance",
    "citation.hit_rate",
    "citation.hit_rate_answerable",
    "citation.recall",
)


def uncited_caution(totals: Totals, metrics: Mapping[str, MetricResult]) -> list[str]:
    """That no answer of a run cites anything: what counts citations is 0 whatever was said."""
    if totals.cited or min(totals.answered, totals.spoken) < FEWEST_UNMATCHED:
        return []
    zeros = [name for name in _BY_CITATIONS if name in metrics and metrics[name].value == 0]
    if not zeros:
        return []
    return [
        f"no answer cites anything, and {', '.join(zeros)} {'is' if len(zeros) == 1 else 'are'} 0 "
        "for that alone; log `citations` with the answers, or choose other metrics (--metrics)"
    ]


def unretrieved_caution(totals: Totals, metrics: Mapping[str, MetricResult]) -> list[str]:
    """That no trace has a hit: a log of answers alone looks like a retriever that finds nothing."""
    if totals.most_hits or not totals.spoken:
        return []
    if not any(name.startswith("retrieval.") and one.value == 0 for name, one in metrics.items()):
        return []
    return [
        "no trace has hits that are read, and retrieval.* is 0 for that alone; log what was "
        "retrieved as `hits`, or choose other metrics (--metrics)"
    ]


def cited_in_text_caution(totals: Totals) -> list[str]:
    """That citations were read which no row lists: brackets may mean something else."""
    if not totals.citing_in_text:
        return []
    count, answers = totals.citations_in_text, totals.citing_in_text
    citations = f"{count:,} citation{'' if count == 1 else 's'}"
    return [
        f"read {citations} written in the text of {answers:,} answer{'' if answers == 1 else 's'}, "
        "as numbers (`[1]` is the first hit) or ids of hits; a list of `citations` in a row comes "
        "before them"
    ]


def citation_names_caution(metrics: Mapping[str, MetricResult]) -> list[str]:
    """That whatever answers cite was not retrieved and is not evidence: are they other names?"""
    in_context = metrics.get("citation.in_context")
    if in_context is None or in_context.value != 0 or in_context.n < FEWEST_UNMATCHED:
        return []
    found = [metrics[name] for name in ("citation.recall", "citation.precision") if name in metrics]
    if any(result.value for result in found):
        return []
    return [
        "nothing that an answer cites was retrieved, or is named as evidence: if citations are "
        "numbers of hits, such as 1 for the first, write the ids of the hits instead"
    ]


def cutoff_caution(ks: tuple[int, ...], totals: Totals) -> list[str]:
    """That a cut-off which was asked for is beyond all hits."""
    most = totals.most_hits
    beyond = [k for k in ks if k > most]
    if not most or not beyond:
        return []
    listed = ", ".join(map(str, beyond))
    return [
        f"k = {listed}, but no trace has more than {most} hit{'' if most == 1 else 's'}: "
        f"nothing is found beyond rank {most}"
    ]


def question_cautions(asked: QuestionTally, first: Callable[[], str]) -> list[str]:
    """That traces say another question than their gold item; `first` says where the first is."""
    cautions = []
    if asked.foreign and not is_foreign(asked):
        cautions.append(
            f"{_traces(asked.foreign)} of {asked.compared:,} about another question than the gold "
            f"item, the first: {first()}"
        )
    if asked.reworded:
        verb = "asks" if asked.reworded == 1 else "ask"
        noun = "trace" if asked.reworded == 1 else "traces"
        cautions.append(
            f"{asked.reworded:,} {noun} {verb} in other words than the gold item (rewriting, "
            "prefixes)"
        )
    return cautions


def _traces(count: int) -> str:
    return f"{count:,} {'trace' if count == 1 else 'traces'}"


def with_source_note(
    metrics: dict[str, MetricResult], table: GoldTable, rules: JoinRules
) -> dict[str, MetricResult]:
    """The metrics, with a word where a source counts as recalled what nobody could retrieve."""
    columns = table.columns
    bare = int(np.count_nonzero(columns.answerable & (columns.relevant_count == 0)))
    if rules.no_evidence != "recalled" or not bare:
        return metrics
    note = f"as in the source: {bare:,} without evidence count as 1"
    return {
        name: replace(result, note=note) if name.startswith("retrieval.recall_all@") else result
        for name, result in metrics.items()
    }


# --- what makes them mean nothing ---


def is_foreign(asked: QuestionTally) -> bool:
    """Whether too many traces are about other questions for a run to be what it seems."""
    return asked.foreign >= FEWEST_FOREIGN and asked.foreign > FOREIGN_SHARE * asked.compared


def foreign_block(asked: QuestionTally, first: Callable[[], str]) -> VerdictBlock:
    """Why a run of other questions is not evaluable."""
    return VerdictBlock(
        "foreign-traces",
        f"{asked.foreign:,} of {_traces(asked.compared)} are about another question than their "
        f"gold item, the first: {first()}; compare the ids of the two files, or say "
        "--allow-other-questions",
    )


def unmeasured_block(
    metrics: Mapping[str, MetricResult],
    totals: Totals,
    labels: GoldLabels | None,
    fields: FieldUse | None,
    *,
    follows_source: bool,
) -> VerdictBlock | None:
    """Why nothing was measured: no metric has a population but by what is not there.

    `fields` are those of the trace file, where there is one. A profile that follows a source counts
    what is absent, so there only rows of which nothing is read measure nothing.
    """
    if fields is not None and not fields.read:
        # Of rows in memory it is not known which fields they had; slips are.
        says_something = totals.most_hits or totals.spoken or totals.errored
        if not says_something and any(field.meant is not None for field in fields.unread):
            return _nothing(_of_fields(fields))
        fields = None
    if fields is not None and fields.is_mute and (fields.unread or not follows_source):
        return _nothing(_of_fields(fields))
    # Who chooses nothing but counts of the run has measured them.
    if follows_source or all(name.startswith("run.") for name in metrics):
        return None
    reads_hits = fields is None or "hits" in fields.read
    has_evidence = labels is None or labels.without_evidence < labels.to_answer
    searched = totals.most_hits > 0 or reads_hits or totals.errored > 0
    cites = has_evidence or totals.cited > 0 or totals.refused > 0

    def measures(name: str, result: MetricResult) -> bool:
        family = name.partition(".")[0]
        if family == "run" or not result.n:
            return False
        if family == "retrieval":
            return searched
        if family == "citation" or name in _NEEDS_EVIDENCE_OR_CITATIONS:
            return cites
        return True

    if any(measures(name, result) for name, result in metrics.items()):
        return None
    lacks = []
    if totals.errored:
        lacks.append(f"{totals.errored:,} traces have an error")
    if not has_evidence:
        lacks.append("no gold item names evidence")
    if not totals.most_hits:
        lacks.append("no trace has hits that are read")
    if not totals.spoken:
        lacks.append("no trace has an answer that is read")
    elif not totals.cited:
        lacks.append("no answer cites anything that is read")
    return _nothing(", ".join(lacks) or "no record is in the population of a chosen metric")


def _nothing(reason: str) -> VerdictBlock:
    return VerdictBlock(
        "nothing-measured", f"{reason}; `ragauge validate --fields` lists what is not read"
    )


def _of_fields(fields: FieldUse) -> str:
    names = [f"`{field.name}`" for field in fields.unread[:5]]
    more = f" and {len(fields.unread) - 5:,} more" if len(fields.unread) > 5 else ""
    listed = f", but {', '.join(names)}{more}" if names else ""
    return f"no trace has hits, an answer or an error under a name that is read{listed}"


_BY_EVIDENCE = ("answer.precision", "answer.grounded_precision", "answer.coverage")


def depends_on_evidence(metrics: Mapping[str, MetricResult]) -> bool:
    """Whether any metric that has a population compares what was found with the evidence."""
    return any(
        result.n and name.startswith(("retrieval.", "citation.", *_BY_EVIDENCE))
        for name, result in metrics.items()
        if name != "retrieval.empty"
    )


def unplaced_block(
    placing: Placing | None, metrics: Iterable[str], gold_name: str, trace_name: str
) -> VerdictBlock | None:
    """Why a run whose hits have no place where its gold has is not evaluable: all ranks miss."""
    by_rank = any(name.startswith("retrieval.") and name != "retrieval.empty" for name in metrics)
    if placing is None or not placing.is_hopeless or not by_rank:
        return None
    return VerdictBlock(
        "nothing-placed",
        f"no hit of {trace_name} has a place that the evidence of {gold_name} can be held "
        f"against: {placing.reasons()}; {placing.cure}",
    )


def unmatched_block(
    keys: GoldKeys,
    totals: Totals,
    names_in_gold: Callable[[], frozenset[str]],
    named_hits: Callable[[frozenset[str]], NamedHits],
) -> VerdictBlock | None:
    """Why a run that matched nothing could not: ids in two ways, or places that hits lack.

    Only of a run without any match the names are looked up, and the hits looked at again.
    """
    if totals.matches:
        return None
    columns = totals.gold
    has_evidence = (columns.piece_count > 0) | (columns.doc_count > 0)
    questions = np.count_nonzero(totals.naming & has_evidence)
    if not questions:
        return None
    names = names_in_gold()
    details = keys.details.values()
    places = [anchor for item in details for anchor in item.anchors]
    docs = {anchor.doc for anchor in places if anchor.doc}
    hits = named_hits(names | docs)
    if questions < FEWEST_UNMATCHED and (hits.identified or not hits.quotable):
        return None
    if hits.matched or (places and hits.listed):
        return None
    if places and hits.placed and not (docs and hits.documented):
        return None
    if places and hits.quotable and any(item.quoted for item in details):
        return None
    if hits.example is None:
        return None
    if places and hits.placed:
        return VerdictBlock(
            "ids-never-match",
            f"no hit or citation (such as {hits.example}) lies in a document that the gold set "
            f"names (such as `{min(docs)}`); log the names that gold has, or say where the "
            "documents are (--corpus DIR)",
        )
    cure = "say where the chunks lie (--chunks FILE or --corpus DIR)"
    mine = f"such as {hits.example}"
    kind = "ids" if hits.example.startswith("`") else "texts"
    if places and not names.difference(anchor.id or "" for anchor in places):
        return VerdictBlock(
            "no-places",
            f"gold names places in documents, but no hit has one (hits are {kind}, {mine}); "
            f"{cure}, or log `doc` and `offsets` with the hits",
        )
    if hits.ending is not None:
        return VerdictBlock(
            "ids-never-match",
            f"no hit is of a document that the gold set names, though names end alike: hits have "
            f"`{hits.ending}`; with the documents, `ragauge corpus build DIR -o corpus` and "
            "--corpus corpus match names by their ends; else log the names that gold has",
        )
    theirs = next((ids[0] for ids in keys.evidence if ids), None) or min(names, default="")
    return VerdictBlock(
        "ids-never-match",
        f"nothing that was retrieved or cited ({mine}) is named in the gold set (such as "
        f"`{theirs}`); log the ids that gold names, or {cure}",
    )


def other_names_block(
    keys: GoldKeys,
    totals: Totals,
    metrics: Mapping[str, MetricResult],
    names_in_gold: Callable[[], frozenset[str]],
    named_hits: Callable[[frozenset[str]], NamedHits],
) -> VerdictBlock | None:
    """Why retrieval cannot be judged where citations are named as in gold, and no hit is."""
    if totals.hits_match or not totals.matches:  # of a run without any match see above
        return None
    ranked = any(
        result.n and name.startswith("retrieval.") and name != "retrieval.empty"
        for name, result in metrics.items()
    )
    columns = totals.gold
    has_evidence = (columns.piece_count > 0) | (columns.doc_count > 0)
    questions = np.count_nonzero(totals.retrieving & has_evidence)
    if not ranked or not questions:
        return None
    names = names_in_gold()
    hits = named_hits(names)
    if questions < FEWEST_UNMATCHED and (hits.identified or not hits.quotable):
        return None
    if hits.retrieved or hits.example_hit is None:
        return None
    theirs = next((ids[0] for ids in keys.evidence if ids), None) or min(names, default="")
    return VerdictBlock(
        "ids-never-match",
        f"what is cited is named as in the gold set, and no hit is (hits such as "
        f"{hits.example_hit}, gold such as `{theirs}`): metrics of retrieval mean nothing; log the "
        "ids that gold names, say where the chunks lie (--chunks FILE or --corpus DIR), or choose "
        "other metrics (--metrics)",
    )


def names_in(keys: GoldKeys) -> frozenset[str]:
    """All names by which a hit or a citation could be what gold speaks of."""
    names = {name for ids in keys.evidence for name in ids}
    for details in keys.details.values():
        names.update(details.ids, details.docs, details.negatives)
        names.update(anchor.id for anchor in details.anchors if anchor.id is not None)
    return frozenset(names)
