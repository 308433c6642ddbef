"""One sentence for each field of the files, for schemas and reference pages.

In the names of keys, `[]` stands for each element of a list, and a word in capitals for any key.
"""

from __future__ import annotations

GOLD_FIELDS = {
    "qid": "the id of the item; every item needs one",
    "question": "the question; with paraphrases only, the first of them",
    "paraphrases": "other ways to ask it",
    "answerable": "true: it must be answered; false: it must be refused. `expect` says the same in "
    "a word, `answer` or `refuse`",
    "relevant": "the evidence: ids, or places in a document, `{doc, start, end}` in bytes of its "
    "text, perhaps with an `id`",
    "relevant_docs": "documents that hold the answer; in the dialect `kb` an empty list says that "
    "the question is to be refused",
    "places": "where the evidence lies, beside its ids; without ids it is the evidence",
    "groups": "lists of evidence of which any member is enough, for questions that need several "
    "facts",
    "grades": "graded relevance, an object from id to number",
    "anchor_section": "the section that holds the answer, as `S.4.2` or `guide.md#S.4.2`",
    "negatives": "hard negatives: ids, places in a document, `{doc, start, end}`, or quotes, "
    "`{doc, quote}`; `gold negatives` writes places",
    "decoy_section": "a section whose blocks are hard negatives",
    "claims": "text of which a right answer contains at least one piece. `gold_claim` is cut into "
    "phrases, the other two are taken whole; pieces under five characters match as whole words, "
    "and never under ship and smoke",
    "references": "right answers to compare what was said with: a text or several, of which the "
    'nearest counts; `{"text": [...]}` as in SQuAD too',
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
    "claim": "the claim of the answer",
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
    "tokens": "the tokens of the models: a number, or an object with a total, or with input and "
    "output, as APIs give it",
    "cost": "what the trace cost, in your currency: a number, or an object with a total",
    "unknown_ids": "ids of hits and citations that the corpus of a live monitor does not have",
    "oversampled": "a live monitor kept the trace by a higher rate than that of all traffic",
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
    "metrics.ID.interval": "the 95 % interval, low and high; null where there is none, and for a "
    "bound that so few questions cannot give",
    "metrics.ID.interval_reason": "why there is no interval, or only one bound",
    "metrics.ID.detectable": "the smallest change to the worse that four runs of five would show",
    "metrics.ID.errored[].value": "only where traces have errors: the value with all of them at "
    "their worst, and then at their best; not rounded",
    "metrics.ID.errored[].n": "its n",
    "metrics.ID.errored[].interval": "its 95 % interval",
    "metrics.ID.version": "the version of the formula",
    "metrics.ID.better": "`higher` or `lower`",
    "metrics.ID.unrounded": "value, low and high before rounding: `ragauge gate` judges by them",
    "metrics.ID.reason": "only where the value is null: why",
    "metrics.ID.band": "only where gold names chunks and it depends on where in them the evidence "
    "stands: the least and the greatest value; the value is null then",
    "metrics.ID.ends[].value": "the metric at the least, and at the greatest, as `ragauge gate` "
    "judges it: not rounded",
    "metrics.ID.ends[].interval": "its 95 % interval",
    "metrics.ID.ends[].detectable": "its smallest change that would show",
    "metrics.ID.ends[].errored[].value": "with traces that have errors at their worst or best",
    "metrics.ID.ends[].errored[].n": "its n",
    "metrics.ID.ends[].errored[].interval": "its 95 % interval",
    "metrics.ID.default": "only where the value is null: what the profile's source prints for "
    "0/0, if it has a source",
    "slices.BY.PART.n": "questions in this part, by type, tag, section, document, language or "
    "difficulty",
    "slices.BY.PART.metrics.ID.value": "the value over the part; null below min_n",
    "slices.BY.PART.metrics.ID.n": "questions of the part in the population",
    "slices.BY.PART.metrics.ID.interval": "its 95 % interval",
    "slices.BY.PART.metrics.ID.detectable": "the smallest change to the worse that would show",
    "slices.BY.PART.metrics.ID.errored[].value": "as for the whole",
    "slices.BY.PART.metrics.ID.errored[].n": "its n",
    "slices.BY.PART.metrics.ID.errored[].interval": "its 95 % interval",
    "slices.BY.PART.metrics.ID.unrounded": "value, low and high before rounding",
    "slices.BY.PART.metrics.ID.band": "as for the whole",
    "slices.BY.PART.metrics.ID.ends[].value": "as for the whole",
    "slices.BY.PART.metrics.ID.ends[].interval": "its 95 % interval",
    "slices.BY.PART.metrics.ID.ends[].detectable": "its smallest change that would show",
    "slices.BY.PART.metrics.ID.ends[].errored[].value": "as for the whole",
    "slices.BY.PART.metrics.ID.ends[].errored[].n": "its n",
    "slices.BY.PART.metrics.ID.ends[].errored[].interval": "its 95 % interval",
    "refusal_rules.RULE": "refusals that this rule decided",
    "refusal_table.CASE": "refusal as a classification: the four counts of records",
    "lambda.computed.STATE": "questions with this λ, computed from their slots; `open`: it "
    "depends on where in its chunk the evidence stands",
    "lambda.recorded.STATE": "questions with this λ, as the traces record it",
    "embedders": "the embedders that the recorded ΔS come from",
    "cites": "whether any answer cites anything",
    "joined.by_id": "only where traces had no id: how many were joined by their ids",
    "joined.by_text": "how many traces without an id were joined by the text of their question",
    "joined.ambiguous": "traces whose question several gold items have: joined with none",
    "joined.unmatched": "traces that belong to no gold item",
    "errors.REASON": "only where there are errors: how many scored traces failed for this reason, "
    "without what differs from one to the next",
    "placing.placed.BY": "only where evidence has places: hits that were placed, by their `id`, "
    "their `offsets`, their `text` or a `part` of it; `quote`: their text is held against quotes",
    "placing.unplaced.REASON": "hits that could not be placed, by reason",
    "stage": "only `first`: the hits before a reranker were scored",
    "stages[].metric": "only where traces have the hits before and after a reranker: a metric",
    "stages[].first": "its value on the hits before it, over the questions that have both lists",
    "stages[].last": "its value on the hits after it",
    "stages[].n": "how many questions that is",
    "stages[].better": "of how many of them the value became higher",
    "stages[].worse": "of how many it became lower",
    "placing.prefixes": "beginnings of document names that the corpus does not have",
    "options.citation_mode": "when a cited span agrees with a gold span",
    "options.citation_window": "that many bytes on each side",
    "options.ignore_case": "whether must_contain and forbidden ignore case",
    "options.relevance_level": "the lowest grade that counts as relevant",
    "options.missing": "whether missing and errored traces count in retrieval metrics",
    "options.refusal_rule": "what counts as a refusal, `token` or `natural`; null: as the profile "
    "has it",
    "options.refusal_patterns": "patterns that also count as a refusal",
    "options.refusal_languages": "languages of the built-in patterns of refusals",
    "options.chunks": "a digest of the list of chunks, null if there was none",
    "options.overlap": "whether half of a place must be covered by the hits up to a rank together "
    "(`cumulative`) or by one of them (`single`)",
    "options.least_evidence": "bytes of the shortest evidence that may stand in a chunk that gold "
    "names",
    "options.min_n": "a slice of fewer questions shows no value",
    "verdict.status": "`pass`, `review`, `fail` or `not-evaluable`: the worst of all",
    "verdict.exit_code": "the exit code of the command",
    "verdict.gates[].name": "the gate, as it was written",
    "verdict.gates[].metric": "the id of its metric, with the cut-off",
    "verdict.gates[].slice": "the part of the questions that is judged, null for all",
    "verdict.gates[].drop": "whether the demand is on the drop against the baseline",
    "verdict.gates[].demand": "the comparison, as in `>= 0.80`",
    "verdict.gates[].status": "as above, for this gate alone; `not-judged` is a gate on ΔS that "
    "leaves the verdict, as calibration showed that it decides nothing",
    "verdict.gates[].value": "the value that was judged",
    "verdict.gates[].threshold": "the threshold as a number",
    "verdict.gates[].n": "questions behind the value",
    "verdict.gates[].margin": "how far the deciding number is on the good side; negative on the "
    "other",
    "verdict.gates[].interval": "the interval of the metric",
    "verdict.gates[].detectable": "the smallest change that a run of this n would show in four "
    "cases of five",
    "verdict.gates[].policy": "`point`: the value decides; `confident-pass`: the bound of the "
    "interval on the wrong side; `confident-fail`: it fails only if the whole interval is beyond",
    "verdict.gates[].chances": "how often the gate decides wrongly at this n; null if not known",
    "verdict.gates[].chances.fails_unchanged": "the share of runs in which an unchanged system "
    "fails",
    "verdict.gates[].chances.reviews_unchanged": "the share in which it gets a review",
    "verdict.gates[].chances.worse": "the true value (or drop) of a system that lies the smallest "
    "detectable change beyond the threshold",
    "verdict.gates[].chances.passes_worse": "the share of runs in which that system passes",
    "verdict.gates[].chances.reviews_worse": "the share in which it gets a review",
    "verdict.gates[].chances.perfect_from": "for `confident-pass`: the fewest questions of which a "
    "perfect score (for a drop: no change) passes; null where no number does",
    "verdict.gates[].caution": "what to know before trusting the verdict: on how few questions it "
    "is",
    "verdict.gates[].origin": "where the gate comes from: a profile, a file or `--gates`",
    "verdict.gates[].reason": "why it is not evaluable, or what else there is to say",
    "verdict.gates[].damage[].query_id": "a question that made the gate fail, the worst first",
    "verdict.gates[].damage[].value": "its value of the gated metric",
    "verdict.gates[].damage[].damage": "how much worse than in the baseline of a drop, or than the "
    "best value there is",
    "verdict.gates[].damage[].share": "its share of all damage",
    "verdict.gates[].damage[].turn": "the turn, for items that are turns of a conversation",
    "verdict.gates[].damage[].before": "its value in the baseline of a drop",
    "verdict.gates[].damage[].lost": "the pieces that are found less often than in the baseline",
    "verdict.gates[].waived": "the waiver that holds, with its date and reason",
    "verdict.blocks[].code": "why the run cannot be judged, as a code of `ragauge explain`",
    "verdict.blocks[].message": "the same in words",
    "warnings": "what a reader should know before trusting a number; the same as on stderr",
    "skipped_lines": "the first 20 skipped lines of each file, with the reason",
    "questions[].qid": "the id of the gold item; `questions` stands here only with --full",
    "questions[].label": "the worst label of its records",
    "questions[].gold_hash": "a hash of what the gold item says; where it was changed, values are "
    "not compared",
    "questions[].reciprocal": "1 over the rank of its first evidence, the mean over its slots; 0 "
    "where none was retrieved, null where none is expected",
    "questions[].slots": "how many of its slots count in retrieval",
    "questions[].units[].name": "what it expects: a piece of evidence, a group of them, or a "
    "document",
    "questions[].units[].ranks": "the ranks, from 1, of the slots that found it",
    "questions[].units[].slots": "which slots these are, where it has several",
    "questions[].units[].best": "the ranks where its evidence is found best, if that depends on "
    "where in a chunk it stands",
    "questions[].units[].worst": "the ranks where it is found worst",
    "questions[].slices.DIMENSION": "the parts of each slice that it is in",
    "questions[].wordings": "the paraphrase of each slot, where it has several; -1 for none",
    "questions[].good": "whether each slot's label is a good one (1), where it has several",
    "questions[].gold": "file and line of the gold item",
    "questions[].trace": "file and line of the record with that label; null if there is none",
    "questions[].labels.LABEL": "records of the question with that label",
    "questions[].turn": "the turn, for items that are turns of a conversation",
    "questions[].cause": "what refines the label: the cause of most of its records; null for none",
    "questions[].causes.CAUSE": "records of the question with that cause",
    "questions[].values.ID": "the question's value of each metric that it has one of, not rounded",
    "questions[].bands.ID": "only where gold names chunks: the least and the greatest value of a "
    "metric that depends on where in them the evidence stands",
}

COMPARE_FIELDS = {
    "schema": "the version of this layout",
    "run_a": "the first run, the one that is compared with",
    "run_b": "the second run",
    "runs.a.name": "what the run is called",
    "runs.a.profile": "the profile that it was scored under",
    "runs.a.gold_name": "the gold file, as it was named",
    "runs.a.trace_name": "the trace file, as it was named",
    "runs.a.gold_hash": "a hash of what the gold set says",
    "runs.a.created_at": "when a stored run was made; null for files",
    "runs.a.commit_hash": "the commit that a stored run was made of",
    "runs.a.suite": "the suite of a stored run",
    "runs.a.chunker_versions": "the chunker versions that its hits name",
    "runs.a.questions": "gold items of the run",
    "runs.a.missing": "compared questions without a result",
    "runs.a.errored": "compared questions with an error",
    "aggregate_a.ID.value": "the value over the compared questions, rounded to four decimals; "
    "null for 0/0",
    "aggregate_a.ID.n": "questions with at least one record in the population",
    "aggregate_a.ID.records": "records in the population",
    "aggregate_a.ID.interval": "the 95 % interval, low and high; null where there is none",
    "aggregate_a.ID.version": "the version of the formula",
    "aggregate_a.ID.unrounded": "the value before rounding",
    "aggregate_a.ID.reason": "why there is no value",
    "aggregate_a.ID.band": "its least and greatest value, where gold names chunks and it depends "
    "on where in them the evidence stands",
    "deltas.chunker_version_match": "one word for how expected items were recognised on both sides",
    "deltas.rungs": "how many expected items were recognised by which rung",
    "deltas.undecided.regression_open": "questions of which nobody can say whether they lost "
    "something, as gold names chunks",
    "deltas.undecided.kind_open": "questions without a kind that holds at all places",
    "deltas.undecided.unplaced": "chunks of which nothing is known but that gold names them",
    "deltas.undecided.wide": "questions with too many combinations of places to compute each",
    "deltas.ids.common": "chunk ids that both runs show; of very many a fair sample is counted",
    "deltas.ids.distinct_a": "chunk ids that the first run shows",
    "deltas.ids.distinct_b": "chunk ids that the second run shows",
    "deltas.ids.reused": "common ids that are other chunks in the second run",
    "deltas.ids.proof": "why ids are believed or not: `proved`, `unproven`, `no-common-ids`, "
    "`other-chunker`, `reused-ids` or `recut-documents`",
    "deltas.sizes.least_evidence": "bytes of the shortest evidence that was considered",
    "deltas.sizes.gold_bytes": "the median size of the chunks that gold names",
    "deltas.sizes.a_hit_bytes": "the median size of a hit of the first run",
    "deltas.sizes.b_hit_bytes": "the same of the second run",
    "deltas.sizes.a_top_bytes": "bytes in the hits of the first run within k, the mean over "
    "questions",
    "deltas.sizes.b_top_bytes": "the same of the second run",
    "deltas.ID.a": "the value of the first run, over questions with a value in both",
    "deltas.ID.b": "the value of the second run",
    "deltas.ID.delta": "b - a, from values that are not rounded",
    "deltas.ID.n": "questions with a value in both runs",
    "deltas.ID.interval": "the 95 % interval of the differences, question by question",
    "deltas.ID.p": "the two-sided p-value",
    "deltas.ID.p_holm": "the p-value corrected (Holm) over the gated metrics, or over those "
    "of the profile where no gate is on a drop; null for all others",
    "deltas.ID.changed": "whether it changed beyond chance: interval and corrected p agree",
    "deltas.ID.moved": "whether a metric without a corrected p moved by its own test, as one in "
    "twenty does by chance",
    "deltas.ID.test": "the test behind p",
    "deltas.ID.detectable": "the smallest change that this n would show in four cases of five",
    "deltas.ID.gated": "whether a gate is on the metric",
    "deltas.ID.better": "`higher` or `lower`",
    "deltas.ID.reason": "why there is no delta",
    "deltas.ID.band": "the least and the greatest delta, where it depends on where in the chunks "
    "that gold names the evidence stands",
    "deltas.ID.band_interval": "the lower 95 % bound of the least to the upper one of the greatest",
    "deltas.ID.a_band": "the least and the greatest value of the first run",
    "deltas.ID.b_band": "the same of the second run",
    "deltas.ID.open": "questions whose delta depends on the place",
    "deltas.ID.estimate": "the delta as a random sample of pinned questions has it, with a 95 % "
    "interval",
    "deltas.ID.guess": "both values and the delta if the evidence stands where the words of the "
    "question do, with --guess-place; nothing is decided by it",
    "deltas.ID.unrounded": "the same before rounding",
    "slices.DIMENSION.PART.n": "compared questions in the part",
    "slices.DIMENSION.PART.deltas.ID.a": "the value of the first run, over questions of the part "
    "with a value in both",
    "slices.DIMENSION.PART.deltas.ID.b": "the value of the second run",
    "slices.DIMENSION.PART.deltas.ID.delta": "b - a",
    "slices.DIMENSION.PART.deltas.ID.n": "questions of the part with a value in both runs",
    "slices.DIMENSION.PART.deltas.ID.interval": "the 95 % interval of the part alone, not adjusted "
    "for their number",
    "kinds.retrieval": "how many questions are of which kind, by all that they expect",
    "kinds.answer": "the same by what came of the answers",
    "kinds.document": "how many questions are of which kind by their documents alone, where "
    "`--accept-doc-level` accepts that",
    "document_level": "the deltas of metrics by document; null without `--accept-doc-level`",
    "k": "the cut-off within which something counts as found in the kinds of retrieval",
    "left_out.REASON": "questions that were not compared, by reason",
    "counted": "questions that were compared",
    "causes[].about": "what differs: chunker, embedder, prompt, model, k, gold, corpus or other",
    "causes[].key": "the setting that differs",
    "causes[].a": "its value in the first run",
    "causes[].b": "its value in the second run",
    "notes": "what a reader should know before trusting a number",
    "verdict": "the verdict by gates, null where none were given",
    "fail_on": "what --fail-on asked for, by kind",
    "fail_on.KIND.questions": "how many questions are of the kinds that count, in retrieval or in "
    "their answers",
    "fail_on.KIND.kinds": "the same by kind; a question of two kinds counts as the first",
    "fail_on.KIND.doc_kinds": "the same by document, of questions of which no more is known",
    "fail_on.KIND.allowed": "how many there may be",
    "fail_on.KIND.explained": "how many of them the noise of the baseline's repeats explains",
    "fail_on.KIND.open": "how many others may be, as gold names chunks and not evidence",
    "fail_on.KIND.repeated": "how many questions the baseline asked several times in one wording",
    "fail_on.KIND.unstable": "how many of those came out differently in the baseline itself",
    "fail_on.KIND.p": "how often exchanged repeats look as bad; null where none is unstable",
    "fail_on.KIND.by_document": "whether kinds by document were accepted for it",
    "fail_on.KIND.failed": "whether more than are allowed are left",
    "fail_on.KIND.status": "`pass`, `fail`, or `open` where that depends on what is not known",
    "fail_on_checks": "every limit of --fail-on in its order; of two on one kind `fail_on` has "
    "the one that decides",
    "fail_on_checks[].given": "the limit as it was given",
    "fail_on_checks[].kind": "the kind that it limits",
    "fail_on_reason": "why --fail-on cannot be judged; null where it can",
    "exit_code": "what the command ends with: by its gates, or else by --fail-on",
    "per_query[].query_id": "the id of the question",
    "per_query[].kind": "what came of its retrieval; null where nothing is expected of it",
    "per_query[].a_hit_rank": "the rank of the first evidence in the first run, from 1; null for "
    "none",
    "per_query[].b_hit_rank": "the same in the second run",
    "per_query[].note": "what else there is to say",
    "per_query[].turn": "the turn, for items that are turns of a conversation",
    "per_query[].a_reciprocal": "the reciprocal rank in the first run, the mean over its slots",
    "per_query[].b_reciprocal": "the same in the second run",
    "per_query[].units": "how many things are expected: groups, else pieces of evidence, else "
    "documents; null where nothing is, or where a file of scores does not say",
    "per_query[].a_units": "how many of them the first run finds within k, the mean over its slots",
    "per_query[].b_units": "the same in the second run",
    "per_query[].lost": "those that the second run finds in fewer slots than the first",
    "per_query[].gained": "those that it finds in more",
    "per_query[].rungs": "how each of its expected items was recognised",
    "per_query[].possible": "the kinds that it may have; one where all places agree",
    "per_query[].regression": "whether it lost something: `yes`, `no`, or `open` where that "
    "depends on the place of the evidence",
    "per_query[].doc_kind": "what came of its documents; null unless no more is known of it",
    "per_query[].certain": "false where `kind` does not hold at all places",
    "per_query[].places": "how many places its evidence may stand at; null where it is known",
    "per_query[].a_found": "how many of them the first run finds within k",
    "per_query[].b_found": "the same of the second run",
    "per_query[].answer": "what came of the answer; null where there is nothing to compare",
    "per_query[].answer.kind": "whether the answer became better, worse, or stayed",
    "per_query[].answer.a_label": "its label in the first run",
    "per_query[].answer.b_label": "its label in the second run",
    "per_query[].answer.refusal": "`answered → refused` or `refused → answered`",
    "per_query[].answer.citations": "`hit → miss` or `miss → hit`",
    "per_query[].answer.a_cause": "what the label of the first run comes from",
    "per_query[].answer.b_cause": "what the label of the second run comes from",
}
COMPARE_FIELDS |= {
    f"{other}{key.removeprefix(first)}": text
    for first, other in (("runs.a.", "runs.b."), ("aggregate_a.", "aggregate_b."))
    for key, text in COMPARE_FIELDS.items()
    if key.startswith(first)
}
COMPARE_FIELDS |= {key: text for key, text in SCORES_FIELDS.items() if key.startswith("verdict.")}
"""The verdict of a comparison is written as that of scores."""
