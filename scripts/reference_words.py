"""The words of the reference pages that no registry holds: one sentence for each name.

`reference.py` fails if a name has no words here, or if words stand here for a name that is gone.
"""

from __future__ import annotations

SAME_WORDS = (
    ("P@k", ("retrieval.precision@k", "retrieval.precision_at_cutoff@k"),
     "over the hits that came back, or over k (trec_eval, ranx) also when fewer came back"),
    ("recall@k", ("retrieval.recall@k", "retrieval.hit@k", "retrieval.recall_all@k"),
     "the share of the evidence (trec_eval), whether any came back, or whether all did"),
    ("CHR", ("citation.hit_rate", "citation.hit_rate_answerable"),
     "over the answers and in scope, or over all answerable questions"),
    ("precision", ("answer.precision", "answer.grounded_precision", "retrieval.precision@k"),
     "of answers with a cited hit, of answers that also contain the claim, or of hits"),
    ("groundedness", ("answer.groundedness",),
     "elsewhere a model's judgement; here known strings that must and must not be there"),
    ("coverage", ("answer.coverage", "citation.resolved"),
     "answers that cite the evidence or its section, or answers whose citations all exist"),
    ("nDCG@k", ("retrieval.ndcg@k",),
     "gain is the grade (trec_eval), or 2^grade - 1 in other tools"),
    ("MAP@k", ("retrieval.map@k",), "divided by all evidence (trec_eval), or by at most k of it"),
)  # fmt: skip
"""Words that mean different things in different tools."""

EXIT_CODES = {
    0: "passed: every gate holds or is waived, or there are no gates",
    1: "a gate failed",
    2: "the command line or the configuration cannot be used",
    3: "the input data cannot be read",
    4: "not evaluable: the run cannot be judged, so it does not pass",
    5: "nothing was measured: no trace met a gold item",
    70: "a fault in ragauge itself",
}

JOIN_RULES = {
    "by": {
        "qid": "a trace belongs to the gold item with its id",
        "question": "a trace belongs to the gold item with exactly its question",
        "either": "a trace belongs to the gold item with its id; a trace without an id, to the "
        "one with exactly its question",
    },
    "keep": {
        "last": "of several traces of a question the last is scored",
        "slot": "of several traces of a slot (question, paraphrase, seed, turn) the last is scored",
        "every": "every trace is scored",
    },
    "refusal": {
        "token": "an answer is a refusal if it is `not in context`, whatever the case and the "
        "blanks around it",
        "declared": "an answer is a refusal by its `refused` flag, else by `grounded: false`, "
        "else by the token `not in context` or a configured pattern",
    },
    "absent": {
        "excluded": "a record without an answer is left out of answer metrics and counted by "
        "reason",
        "empty-answer": "a missing trace, or one without an answer, counts as an empty answer",
    },
    "unlabelled": {
        "unlabelled": "an item without `answerable` is neither answerable nor unanswerable",
        "unanswerable": "an item without `answerable` is unanswerable",
        "creditable": "an item without `answerable` is counted among the unanswerable ones, yet "
        "an answer to it can be right and is never a hallucination",
        "by-evidence": "an item without `answerable` is answerable if it has evidence or an "
        "anchor section, and unlabelled otherwise",
    },
    "no_evidence": {
        "excluded": "an answerable item without evidence is left out of recall",
        "recalled": "an answerable item without evidence counts as recalled",
    },
    "no_claims": {
        "excluded": "an item that names no claims is left out of claim containment",
        "counted": "an item that names no claims counts as not contained",
    },
    "duplicate_gold": {
        "error": "two gold items with one id are an error",
        "last": "of two gold items with one id (or, joined by question, with one question) the "
        "last is taken",
    },
    "grid": {
        "warned": "a question that lacks a slot (paraphrase and seed) that others have is warned "
        "of",
        "complete": "a question that lacks a slot (paraphrase and seed) that others have makes the "
        "run not evaluable, unless --allow-missing",
    },
    "errored_hits": {
        "excluded": "a trace with an error is left out of `retrieval.empty`, unless errors are not "
        "looked at (`absent = empty-answer`)",
        "empty": "a trace with an error counts as one without hits in `retrieval.empty`; a missing "
        "one is left out",
    },
    "unit": {
        "question": "a mean is over questions; the slots of a question are averaged first",
        "row": "a mean is over scored traces",
    },
}

GOLD_FIELDS = {
    "qid": "the id of the item; every item needs one",
    "question": "the question; with paraphrases only, the first of them",
    "paraphrases": "other ways to ask it",
    "answerable": "true: it must be answered; false: it must be refused",
    "relevant": "the evidence: ids, or places in a document, `{doc, start, end}` in bytes of its "
    "text, perhaps with an `id`",
    "relevant_docs": "documents that hold the answer; in the dialect `kb` an empty list says that "
    "the question is to be refused",
    "places": "where the evidence lies, beside its ids; without ids it is the evidence",
    "groups": "lists of evidence of which any member is enough, for questions that need several "
    "facts",
    "grades": "graded relevance, an object from id to number",
    "anchor_section": "the section that holds the answer, as `S.4.2` or `guide.md#S.4.2`",
    "negatives": "ids of hard negatives",
    "decoy_section": "a section whose blocks are hard negatives",
    "claims": "text of which a right answer contains at least one piece. `gold_claim` is cut into "
    "phrases, the other two are taken whole; pieces under five characters never match",
    "must_contain": "strings that must all be in the answer",
    "forbidden": "strings of which none may be in the answer",
    "constraints": "sentences that the answer must echo",
    "turn": "the turn of a conversation: items may share an id and differ in the turn",
    "unit": "the unit of offsets in this item, `byte` if it is not said",
    "type": "a slice: prose, code, table or figure; else the type that the ids speak of",
    "tags": "slices",
    "group": "kept with the item",
    "difficulty": "a slice",
    "lang": "a slice, called language",
}

TRACE_FIELDS = {
    "qid": "the id of the gold item",
    "question": "the question as it was asked",
    "paraphrase": "which paraphrase was asked, a whole number",
    "seed": "the seed of the run, a whole number or text",
    "turn": "the turn of the conversation, a whole number",
    "hits": "what was retrieved, best first: ids, or objects with an id and perhaps `doc`, "
    "`section`, `offsets`, `score`, `type`, `text` and ΔS",
    "answer": "the answer: text, or an object with `claim` or `text`, `citations`, `refused`, "
    "`grounded`, `constraints_echo`",
    "text": "the answer as text",
    "citations": "the cited ids; without a list, `citations: [a, b]` inside the text is read",
    "refused": "true: the system says that this is a refusal",
    "grounded": "false: the system says that it found no ground for an answer",
    "constraints_echo": "the constraints as the answer repeats them",
    "error": "why there is no result",
    "delta_s": "ΔS, the distance from the question: a list beside the hits, or one number for the "
    "cited snippet; it may also stand in hits, citations and the answer",
    "lambda_state": "the recorded state of λ: → ← <> ×, or convergent, divergent, recursive, "
    "chaotic",
    "perf": "times of the parts: `t_retrieve_ms` and `t_reason_ms`",
    "total_ms": "the time in all, in milliseconds",
}

SCORES_FIELDS = {
    "schema": "the version of this layout; `ragauge gate` refuses any other",
    "profile": "the profile that the run was scored under",
    "dialect": "the dialect that the files were read as",
    "k": "the cut-offs",
    "inputs.gold": "the gold file, as it was named",
    "inputs.trace": "the trace file, as it was named",
    "gold_hash": "a hash of what the gold set says, null unless --full or --store",
    "missing": "gold items without a trace",
    "duplicates": "traces that a later one replaced; where every trace is scored, traces on a "
    "question that another trace is on too",
    "unknown": "traces that belong to no gold item",
    "errored": "scored traces that carry an error",
    "skipped": "bad lines that were skipped, in both files",
    "counts.gold": "gold items that were scored against",
    "counts.gold_duplicates": "gold items that a later one replaced",
    "counts.gold_skipped": "bad lines of the gold file",
    "counts.traces": "traces that were read",
    "counts.trace_skipped": "bad lines of the trace file",
    "counts.unknown": "as `unknown`",
    "counts.duplicates": "as `duplicates`",
    "counts.missing": "as `missing`",
    "counts.missing_slots": "slots (paraphrase and seed seen in the run) that questions with a "
    "trace lack",
    "counts.errored": "as `errored`",
    "counts.repeated_ids": "scored traces with an id twice among the hits; counted with --full",
    "counts.disordered": "traces (TREC: queries) whose ranks or scores disagree with the order "
    "that counts",
    "counts.scored": "traces that were scored",
    "counts.answered": "records with an answer that is not a refusal",
    "counts.refused": "records with a refusal",
    "counts.answerable": "records of items to be answered",
    "counts.unanswerable": "records of items to be refused",
    "metrics.ID.value": "the value, rounded to four decimals; null for 0/0",
    "metrics.ID.n": "questions with at least one record in the population",
    "metrics.ID.records": "records in the population",
    "metrics.ID.excluded.REASON": "records that were left out, by the first reason that held",
    "metrics.ID.interval": "the 95 % interval, low and high; null where there is none",
    "metrics.ID.version": "the version of the formula",
    "metrics.ID.better": "`higher` or `lower`",
    "metrics.ID.unrounded": "value, low and high before rounding: `ragauge gate` judges by them",
    "metrics.ID.reason": "only where the value is null: why",
    "metrics.ID.default": "only where the value is null: what the profile's source prints for "
    "0/0, if it has a source",
    "slices.BY.PART.n": "questions in this part, by type, tag, section, document, language or "
    "difficulty",
    "slices.BY.PART.metrics.ID.value": "the value over the part; null below min_n",
    "slices.BY.PART.metrics.ID.n": "questions of the part in the population",
    "slices.BY.PART.metrics.ID.interval": "its 95 % interval",
    "slices.BY.PART.metrics.ID.unrounded": "value, low and high before rounding",
    "refusal_rules.RULE": "refusals that this rule decided",
    "refusal_table.CASE": "refusal as a classification: the four counts of records",
    "lambda.computed.STATE": "questions with this λ, computed from their slots",
    "lambda.recorded.STATE": "questions with this λ, as the traces record it",
    "embedders": "the embedders that the recorded ΔS come from",
    "cites": "whether any answer cites anything",
    "options.citation_mode": "when a cited span agrees with a gold span",
    "options.citation_window": "that many bytes on each side",
    "options.ignore_case": "whether must_contain and forbidden ignore case",
    "options.relevance_level": "the lowest grade that counts as relevant",
    "options.missing": "whether missing and errored traces count in retrieval metrics",
    "options.refusal_patterns": "patterns that also count as a refusal",
    "options.chunks": "a digest of the list of chunks, null if there was none",
    "options.overlap": "whether half of a place must be covered by the hits up to a rank together "
    "(`cumulative`) or by one of them (`single`)",
    "options.min_n": "a slice of fewer questions shows no value",
    "verdict.status": "`pass`, `review`, `fail` or `not-evaluable`: the worst of all",
    "verdict.exit_code": "the exit code of the command",
    "verdict.gates[].name": "the gate, as it was written",
    "verdict.gates[].metric": "the id of its metric, with the cut-off",
    "verdict.gates[].slice": "the part of the questions that is judged, null for all",
    "verdict.gates[].drop": "whether the demand is on the drop against the baseline",
    "verdict.gates[].demand": "the comparison, as in `>= 0.80`",
    "verdict.gates[].status": "as above, for this gate alone",
    "verdict.gates[].value": "the value that was judged",
    "verdict.gates[].threshold": "the threshold as a number",
    "verdict.gates[].n": "questions behind the value",
    "verdict.gates[].margin": "how far the deciding number is on the good side; negative on the "
    "other",
    "verdict.gates[].interval": "the interval of the metric",
    "verdict.gates[].detectable": "the smallest change that a run of this n would show in four "
    "cases of five",
    "verdict.gates[].policy": "`point`: the value decides; `interval`: the bound of the interval "
    "on the wrong side does",
    "verdict.gates[].origin": "where the gate comes from: a profile, a file or `--gates`",
    "verdict.gates[].reason": "why it is not evaluable, or what else there is to say",
    "verdict.gates[].waived": "the waiver that holds, with its date and reason",
    "verdict.blocks[].code": "why the run cannot be judged, as a code of `ragauge explain`",
    "verdict.blocks[].message": "the same in words",
    "warnings": "what a reader should know before trusting a number; the same as on stderr",
    "skipped_lines": "the first 20 skipped lines of each file, with the reason",
    "questions[].qid": "the id of the gold item; `questions` stands here only with --full",
    "questions[].label": "the worst label of its records",
    "questions[].gold_hash": "a hash of what the gold item says; where it was changed, values are "
    "not compared",
    "questions[].gold": "file and line of the gold item",
    "questions[].trace": "file and line of the record with that label; null if there is none",
    "questions[].labels.LABEL": "records of the question with that label",
    "questions[].turn": "the turn, for items that are turns of a conversation",
    "questions[].cause": "what refines the label: the cause of most of its records; null for none",
    "questions[].causes.CAUSE": "records of the question with that cause",
    "questions[].values.ID": "the question's value of each metric that it has one of, not rounded",
}

SHIP_FIELDS = {
    "answered": "records with an answer that is not a refusal",
    "refused": "records with a refusal",
    "answerable": "items with `answerable: true`",
    "unanswerable": "all other items",
    "precision": "`answer.grounded_precision`",
    "chr": "`citation.hit_rate`",
    "under_refusal": "`refusal.under`",
    "over_refusal": "`refusal.over`",
    "recall@k": "`retrieval.recall_all` at the cut-off",
    "k": "the cut-off: one number, not a list",
    "gates.NAME": "the threshold, as it was written",
    "pass": "whether every gate holds or is waived. It says nothing of missing traces: the exit "
    "code and `verdict` do",
}
