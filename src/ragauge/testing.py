"""Runs inside tests: what a test says is scored once, and asked for gates, invariants and signals.

`assert_rag` asks the same of one question that a live system has just answered.

It knows nothing of any test framework: `ragauge.pytest_plugin` is the face for pytest.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.api.arguments import checked, refuse_no_rows
from ragauge.compare.align import align
from ragauge.compare.common_gold import StoredRun
from ragauge.config import FILE_NAME, Config, load_config, load_gates
from ragauge.config import located as located_in
from ragauge.errors import RagaugeError
from ragauge.formats import load
from ragauge.gates import judge as gating
from ragauge.gates import parse
from ragauge.gates.baselines import GateBaseline, judge_against
from ragauge.model import phrases, scores_document
from ragauge.model.embedder import Embedding
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.labels import GOOD, MEANINGS
from ragauge.model.options import CitationMode
from ragauge.model.profile import Profile
from ragauge.model.scores import QuestionResult, Scores
from ragauge.model.scores_document import rounded
from ragauge.model.verdict import Gate, Verdict, Waiver
from ragauge.recorder.hit_objects import hits_of
from ragauge.scoring import score
from ragauge.scoring.inputs import ScoredRun
from ragauge.store import runs as run_store
from ragauge.store.run_files import import_run_file, read_run_file
from ragauge.text import plain
from ragauge.trust.consent import require
from ragauge.trust.needs import needs_of_embedder

T = TypeVar("T")

_QUESTIONS = 8


class Scored(Struct, frozen=True, kw_only=True):
    """Settings with the configuration and the scores that they lead to."""

    settings: MarkerSettings
    config: Config
    profile: Profile
    scores: Scores
    baselines: tuple[GateBaseline, ...] = ()

    @property
    def gates(self) -> list[Gate]:
        """All gates: of the profile, the configuration and the test."""
        return _gates(self.settings, self.config, self.profile, self.scores.k)

    def judged(self, gates: Sequence[Gate], waivers: Sequence[Waiver] = ()) -> Verdict:
        """The verdict by some gates."""
        return judge_against(
            self.scores,
            gates,
            self.baselines,
            source_rules=self.profile.follows_source,
            whole_grid=self.profile.join.grid == "complete",
            tolerance=self.settings.tolerance,
            waivers=waivers,
            today=date.today() if waivers else None,
            bands=self.config.bands,
        )


class Scorer:
    """Scores every set of settings once, and remembers it; what went wrong is remembered too."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[bytes, Scored | RagaugeError] = {}

    def scored(self, settings: MarkerSettings, also: Sequence[str] = ()) -> Scored:
        """The scores of settings, with some metrics that they do not name."""
        measured = replace(settings, invariants=(), signals=())
        also = [*also, *(name for name in texts(settings.signals) if "." in name)]
        key = msgspec.json.encode([measured, texts(settings.invariants), sorted(set(also))])
        if key not in self._known:
            try:
                self._known[key] = self._score(settings, also)
            except RagaugeError as error:
                self._known[key] = error
        outcome = self._known[key]
        if isinstance(outcome, RagaugeError):
            raise RagaugeError(outcome.problems, total=outcome.total)
        return outcome

    def _score(self, settings: MarkerSettings, also: Sequence[str]) -> Scored:
        config = self._config(settings)
        try:
            return self._score_with(config, settings, also)
        except RagaugeError as error:
            raise located_in(error, config) from error

    def _score_with(self, config: Config, settings: MarkerSettings, also: Sequence[str]) -> Scored:
        files = {"gold": settings.gold or config.gold, "trace": settings.trace or config.trace}
        for name, path in files.items():
            if path is None:
                raise RagaugeError.of(
                    "usage",
                    f"the test names no {name} file",
                    hint=f'write @pytest.mark.ragauge({name}="FILE"), give --ragauge-{name} FILE, '
                    f"or set `{name}` in {FILE_NAME}",
                )
        with ExitStack() as stack:
            return self._score_beside(stack, config, settings, also, files)

    def _score_beside(
        self,
        stack: ExitStack,
        config: Config,
        settings: MarkerSettings,
        also: Sequence[str],
        files: Mapping[str, str | None],
    ) -> Scored:
        """The scores, and the baselines; a run file is aligned with the run, hit by hit."""
        from ragauge.cli.store_options import temporary_store

        named = _baselines(stack, settings, config)
        own_runs: list[StoredRun] = []

        def keep(run: ScoredRun) -> None:
            if run.scores.unmeasured is None:
                store = stack.enter_context(temporary_store())
                description = run_store.RunDescription(run_id="run", created_at="", is_file=True)
                own_runs.append(StoredRun(store, run_store.store_run(store, run, description)))

        runs_with_hits = any(isinstance(source, StoredRun) for _, source in named)
        chosen = {
            name: value
            for name in ("citation_mode", "relevance_level", "ignore_case", "min_n")
            if (value := getattr(settings, name)) is not None
        }

        def every_gate(profile: Profile, ks: Sequence[int]) -> list[Gate]:
            gates = _gates(settings, config, profile, ks)
            return [*gates, *_invariants(texts(settings.invariants), profile, ks)]

        embed, cache = None, config.embed_cache
        if config.embed is not None:
            require(config, needs_of_embedder(config))
            embed = Embedding(name=config.embed, settings=config.embedders, cache=cache)
        scores = score.score(
            str(files["gold"]),
            str(files["trace"]),
            profile=settings.profile or config.profile,
            dialect=settings.dialect or config.dialect or "auto",
            k=settings.k or config.k or None,
            metrics=settings.metrics or config.metrics,
            also=also,
            gates=every_gate,
            missing=settings.missing,
            on_bad_line=settings.on_bad_line,
            refusal_patterns=config.refusal.patterns,
            intervals=settings.intervals,
            count_repeats=False,
            chunks=settings.chunks or config.chunks,
            corpus=settings.corpus or config.corpus,
            options=replace(config.options, **chosen),
            hashes=bool(named),
            keep=keep if runs_with_hits else None,
            embed=embed,
            bands=config.bands,
            fields=config.field_maps,
            ignore_fields=config.ignored_fields,
        )
        return Scored(
            settings=settings,
            config=config,
            profile=registry.profile(scores.profile),
            scores=scores,
            baselines=_gate_baselines(named, own_runs[0] if own_runs else None),
        )

    def _config(self, settings: MarkerSettings) -> Config:
        if settings.config == NO_CONFIG:
            return Config()
        if settings.config is not None:
            return load_config(Path(settings.config))
        here = self.root / FILE_NAME
        return load_config(here) if here.exists() else Config()

    def shortened(self, text: str) -> str:
        """A text in which files of the project are named from its root."""
        return text.replace(f"{self.root}{os.sep}", "")


NamedSource = tuple[str, Scores | StoredRun | None]


def _baselines(stack: ExitStack, settings: MarkerSettings, config: Config) -> list[NamedSource]:
    """What drops are judged against: the file of the test, else all that ragauge.toml names.

    Tests read files of scores and run files. Against any other name nothing can be judged, and no
    gate on a drop passes by leaving it out.
    """
    from ragauge.cli.store_options import temporary_store

    names = config.baselines if settings.baseline is None else (settings.baseline,)
    sources: list[NamedSource] = []
    for name in names:
        file = read_run_file(name)
        if file is not None:
            store = stack.enter_context(temporary_store())
            sources.append((Path(name).name, StoredRun(store, import_run_file(file, store))))
        elif Path(name).is_file() or settings.baseline is not None:
            sources.append((Path(name).name, scores_document.load_scores(name)))
        else:
            sources.append(
                (f"{Path(name).name} (tests read files of scores and of runs only)", None)
            )
    return sources


def _gate_baselines(
    sources: Sequence[NamedSource], run: StoredRun | None
) -> tuple[GateBaseline, ...]:
    baselines = []
    for label, source in sources:
        if not isinstance(source, StoredRun):
            baselines.append(GateBaseline(scores=source, label=label))
        elif run is None:  # nothing was measured, and nothing is judged
            scores = run_store.run_scores(source.store, source.record)
            baselines.append(GateBaseline(scores=scores, label=label))
        else:
            aligned = align(source, run)
            baselines.append(GateBaseline(scores=aligned.a, beside=aligned.b, label=label))
    if len(baselines) == 1 and baselines[0].scores is not None:
        return (replace(baselines[0], label=None),)
    return tuple(baselines)


def _gates(
    settings: MarkerSettings, config: Config, profile: Profile, ks: Sequence[int]
) -> list[Gate]:
    layers = [
        parse.profile_gates(profile, ks),
        parse.parse_table(
            config.gates,
            profile,
            ks,
            origin=config.origin,
            place_of=lambda name: config.place("gates", name),
        ),
    ]
    if isinstance(settings.gates, str):
        layers.append(parse.parse_items(settings.gates, profile, ks))
    elif settings.gates is not None:
        layers.append(parse.parse_table(settings.gates, profile, ks, origin="gates"))
    return parse.merge(*layers)


def _invariants(texts: Sequence[str], profile: Profile, ks: Sequence[int]) -> list[Gate]:
    gates = [gate for text in texts for gate in parse.parse_items(text, profile, ks)]
    # What a test asserts of its own few rows is no sample: one question is enough.
    return [replace(gate, origin="invariants", min_n=min(gate.min_n, 1)) for gate in gates]


class JudgedQuestion:
    """One question of a run, in a test of its own."""

    def __init__(self, result: QuestionResult, run: JudgedRun) -> None:
        self._result = result
        self._run = run
        self.qid = result.qid
        self.turn = result.turn
        self.label = result.label
        self.labels = result.labels
        self.cause = result.cause
        self.gold = run.shortened(result.gold)
        self.trace = None if result.trace is None else run.shortened(result.trace)

    def __repr__(self) -> str:
        return f"<Question {phrases.question_name(self.qid, self.turn)}: {self.label}>"

    @property
    def good(self) -> bool:
        """Whether the label is a good one."""
        return self.label in GOOD

    @property
    def text(self) -> str | None:
        """The question itself, where the gold set has it."""
        return self._run.asked(self.qid, self.turn)

    def assert_good(self) -> None:
        """Fail the test unless the label is a good one."""
        __tracebackhide__ = True
        if not self.good:
            raise AssertionError(self.told)

    @property
    def told(self) -> str:
        """What came of the question, and where to look."""
        name = phrases.question_name(self.qid, self.turn)
        lines = [f"{name}: {self.label}: {MEANINGS[self.label]}"]
        if self.text is not None:
            lines.append(f"  question: {plain(self.text)}")
        if self.cause is not None:
            lines.append(f"  cause:    {self.cause}")
        lines.append(f"  gold:     {plain(self.gold)}")
        lines.append(f"  trace:    {plain(self.trace) if self.trace is not None else 'none'}")
        return "\n".join(lines)


class JudgedRun:
    """A scored run as one test sees it.

    scores, verdict   as `ragauge.score` and `ragauge.gate` give them
    questions         every question with its label, in gold order

    `record` takes the name and the value of a signal; `stop` ends the test for what its author
    can fix.
    """

    def __init__(
        self,
        scorer: Scorer,
        settings: MarkerSettings,
        *,
        record: Callable[[str, object], None],
        stop: Callable[[str], NoReturn],
    ) -> None:
        self._scorer = scorer
        self._record = record
        self._stop = stop
        self._scored = scorer.scored(settings)
        self.settings = settings

    def __repr__(self) -> str:
        return f"<JudgedRun: {phrases.run_summary(self.scores)}>"

    @property
    def scores(self) -> Scores:
        """What was measured."""
        return self._scored.scores

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict by all gates: of the profile, of `ragauge.toml` and of the test."""
        return self._scored.judged(self._scored.gates, self._scored.config.waivers)

    @cached_property
    def questions(self) -> list[JudgedQuestion]:
        """Every question with its label, in gold order."""
        return [JudgedQuestion(result, self) for result in self.scores.questions]

    def assert_gates(self) -> None:
        """Fail the test unless every gate holds; a run that cannot be judged fails too."""
        __tracebackhide__ = True
        if not self.verdict.gates:
            headline = phrases.verdict_headline(self.verdict)
            hint = 'write gates="METRIC>=NUMBER", or gates in ragauge.toml'
            raise AssertionError(f"{headline}\n  hint: {hint}")
        if self.verdict.exit_code:
            raise AssertionError(self._told(self.verdict, "gate"))

    def invariants(self, *texts: str) -> None:
        """Fail the test unless these demands hold, as `coverage >= 0.9`; they stand alone."""
        __tracebackhide__ = True

        def ask() -> list[Gate]:
            wanted = _invariants(texts, self._scored.profile, self.scores.k)
            self._measure([gate.metric for gate in wanted])
            return wanted

        wanted = self._mendable(ask)
        verdict = self._scored.judged(wanted)
        if wanted and verdict.exit_code:
            raise AssertionError(self._told(verdict, "invariant"))

    def signals(self, *names: str) -> dict[str, float | None]:
        """Record the values of metrics; they never fail the test, whatever they are."""
        __tracebackhide__ = True

        def ask() -> list[str]:
            meant = map(self._scored.profile.meant, names)
            wanted = [metric.id for metric in registry.select(meant, self.scores.k)]
            self._measure(wanted)
            return wanted

        wanted = self._mendable(ask)
        results = {name: self.scores.metrics[name] for name in wanted}
        for name, result in results.items():
            value = rounded(result.value)
            self._record(name, "0/0" if value is None else value)
            self._record(f"{name}.n", result.n)
        return {name: result.value for name, result in results.items()}

    def _mendable(self, ask: Callable[[], T]) -> T:
        """What was asked for; an error that the test's author can fix ends the test."""
        __tracebackhide__ = True
        try:
            return ask()
        except RagaugeError as error:
            problem = self.shortened(str(error))
        return self._stop(problem)  # not inside `except`: one failure and not a chain of two

    def _measure(self, metrics: Sequence[str]) -> None:
        """Score again where metrics are wanted that the profile and the test do not name."""
        lacking = [name for name in metrics if name not in self.scores.metrics]
        if lacking:
            also = [*self.scores.metrics, *lacking]
            self._scored = self._scorer.scored(self.settings, also)

    def asked(self, qid: str, turn: int | None) -> str | None:
        """The text of a question; None where the gold set cannot be read by itself."""
        return self._texts.get((qid, turn))

    @cached_property
    def _texts(self) -> dict[tuple[str, int | None], str | None]:
        try:
            items = load.load_gold(
                self.scores.gold_name,
                dialect=self.scores.dialect,
                fields=self._scored.config.field_maps,
            ).items
        except RagaugeError:
            return {}
        return {(item.qid, item.turn): item.question for item in items}

    def shortened(self, text: str) -> str:
        """A text in which files of the project are named from its root."""
        return self._scorer.shortened(text)

    def _told(self, verdict: Verdict, noun: str) -> str:
        """The headline, what does not hold, and the worst questions."""
        lines = [phrases.verdict_headline(verdict)]
        for result in verdict.gates:
            if result.status in ("not-judged", "pass", "review") or result.waived:
                continue
            note = result.reason
            lines.append(
                f"  {noun} `{phrases.gate_name(result)}`: {phrases.number(result.value)} "
                f"{phrases.threshold_text(result)} (n = {result.n}): {result.status}"
                + (f" - {note}" if note else "")
            )
        lines += [f"  warning: {plain(warning)}" for warning in self.scores.warnings]
        bad = phrases.questions_needing_attention(self.scores)
        if bad:
            lines.append(f"  {phrases.count(len(bad), 'question')} to look at:")
        for question in bad[:_QUESTIONS]:
            name = phrases.question_name(question.qid, question.turn)
            cause = f" ({question.cause})" if question.cause is not None else ""
            where = plain(question.trace or question.gold)
            lines.append(f"    {name}  {question.label}{cause}  {where}")
        if len(bad) > _QUESTIONS:
            lines.append(f"    ... and {len(bad) - _QUESTIONS} more")
        return self.shortened("\n".join(lines))


FILES = ("gold", "trace", "chunks", "corpus", "baseline", "config")
"""Settings that name a file or a folder."""


NO_CONFIG = "none"


class MarkerSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What a test says of its run: the options of `ragauge score`, and what is demanded.

    config       instead of the project's `ragauge.toml`; `none` for none at all
    gates        demands on top of those of the profile and of `ragauge.toml`
    invariants   demands that stand alone, whatever the profile demands
    signals      metrics that are recorded and never judged
    """

    gold: str | None = None
    trace: str | None = None
    profile: str | None = None
    dialect: str | None = None
    k: int | tuple[int, ...] | None = None
    metrics: tuple[str, ...] = ()
    chunks: str | None = None
    corpus: str | None = None
    baseline: str | None = None
    config: str | None = None
    missing: Literal["count", "exclude"] = "count"
    on_bad_line: Literal["stop", "skip"] = "stop"
    citation_mode: CitationMode | None = None
    relevance_level: float | None = None
    ignore_case: bool | None = None
    min_n: int | None = None
    intervals: bool = True
    gates: str | dict[str, Any] | None = None
    invariants: str | tuple[str, ...] = ()
    signals: str | tuple[str, ...] = ()
    allow_missing: bool = False
    allow_errored: bool | float = False
    allow_skipped: bool = False
    allow_empty: bool = False
    allow_no_baseline: bool = False
    allow_other_questions: bool = False
    allow_fewer_questions: bool = False
    accept_doc_level: bool = False
    require_delta_s: bool = False

    @property
    def tolerance(self) -> gating.Tolerance:
        """What may be wrong with a run that is judged all the same."""
        others = ("no_delta_s", "doc_level")
        names = [name for name in gating.Tolerance.__struct_fields__ if name not in others]
        allowed = {name: getattr(self, f"allow_{name}") for name in names}
        return gating.Tolerance(
            **allowed, no_delta_s=not self.require_delta_s, doc_level=self.accept_doc_level
        )


def read_settings(arguments: Mapping[str, Any], folders: Sequence[Path]) -> MarkerSettings:
    """Check what a test says; file names are looked for in the folders, the first one first."""
    fields = MarkerSettings.__struct_fields__
    for name in arguments:
        if name not in fields:
            raise registry.unknown_name("setting", name, fields)
    values = {
        name: os.fspath(v) if isinstance(v, os.PathLike) else v for name, v in arguments.items()
    }
    for name in FILES:
        value = values.get(name)
        if isinstance(value, str) and not (name == "config" and value == NO_CONFIG):
            values[name] = located(value, folders)
    if isinstance(values.get("gates"), str) and values["gates"].endswith(".toml"):
        values["gates"] = load_gates(Path(located(values["gates"], folders)))
    if isinstance(values.get("metrics"), str):
        values["metrics"] = values["metrics"].split(",")
    try:
        return msgspec.convert(values, MarkerSettings)
    except msgspec.ValidationError as error:
        raise RagaugeError.of(
            "usage",
            f"the settings of the test cannot be used: {error}",
            hint="they are those of `ragauge score`, with gates, invariants and signals",
        ) from error


def located(name: str, folders: Sequence[Path]) -> str:
    """The file of that name in the first folder that has it; where none has, in the first."""
    paths = [folder / name for folder in folders]
    return str(next((path for path in paths if path.exists()), paths[0]))


def texts(value: str | Sequence[str]) -> list[str]:
    """One text or several, as a list."""
    return [value] if isinstance(value, str) else list(value)


_CHECKS = (
    ("answer", "refusal.under", "it answered, and there is no answer"),
    ("answer", "refusal.over", "it refused, and there is an answer"),
    ("answer", "answer.claim_containment", "none of the claims is in the answer"),
    (
        "answer",
        "answer.groundedness",
        "the answer lacks what it must contain, or says what is forbidden",
    ),
    ("citations", "citation.hit_rate", "the citations miss the evidence, or what was retrieved"),
    ("retrieval", "retrieval.hit", "none of the evidence is among the hits"),
    ("retrieval", "retrieval.anchor_hit", "no hit is from the expected section"),
    ("retrieval", "retrieval.recall_doc", "not all expected documents are among the hits"),
)
"""What `assert_rag` asks for: the part of the system, the metric, and what it means to fail it."""
_SHOWN_HITS = 10
_SHOWN_TEXT = 300


@partial(checked, rows={})
def assert_rag(
    question: str,
    answer: Any,
    hits: Any,
    gold: Any,
    *,
    qid: str | None = None,
    citations: Sequence[Any] | None = None,
    k: int | None = None,
    only: Literal["answer", "retrieval"] | None = None,
    gates: str | Mapping[str, Any] | None = None,
    corpus: str | os.PathLike[str] | None = None,
    chunks: str | os.PathLike[str] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> None:
    """Fail the test unless a system did with one question what its gold item says.

    It must refuse where there is no answer, and only there; say one of the claims, all it must
    contain and nothing forbidden; and have some of the evidence among its hits (the first `k`).
    What the item does not say is not asked, but an item that says nothing to check is an error.
    Given `citations` must hit the evidence. `gates` ask for more, as `"recall@5>=1"`.

    `gold` is an item (a dict or a `GoldItem`), or a gold set in any form that `score` takes, in
    which the item is looked up by `qid` or by the text of the question. `hits` may be documents of
    LangChain, nodes of LlamaIndex, dicts, ids or texts; with `corpus` they are placed in it by
    their texts. `only` leaves the other half aside. Nothing is asked over the network.
    """
    __tracebackhide__ = True
    item = _gold_item(gold, question, qid, fields)
    row = _live_trace(item, question, answer, hits, citations)
    depth = k if k is not None else max(1, len(row["hits"]))
    checks = [check for check in _CHECKS if _is_asked(check[0], only, citations)]
    ids = [f"{name}@{depth}" if _has_cut_off(name) else name for _, name, _ in checks]
    profile = registry.profile("all")
    wanted = _demands(gates, profile, depth)
    scores = score.score(
        [item],
        [row],
        profile="all",
        k=depth,
        metrics=ids,
        gates=wanted,
        corpus=corpus,
        chunks=chunks,
        intervals=False,
        hashes=False,
    )
    for block in scores.blocks:
        if block.code != "nothing-measured":  # that is said below, in other words
            hint = f"see `ragauge explain {block.code}`"
            raise RagaugeError.of(block.code, block.message, hint=hint)
    values = {name: scores.metrics[name].value for name in ids}
    failed = [] if answer is not None or only == "retrieval" else ["there is no answer"]
    for (_, name, meaning), full in zip(checks, ids, strict=True):
        best = 0.0 if registry.metrics()[name].better == "lower" else 1.0
        if values[full] not in (None, best):
            failed.append(meaning)
    verdict = gating.judge(scores, wanted, source_rules=False)
    for result in verdict.gates:
        if result.status not in ("pass", "review"):
            failed.append(
                f"{phrases.gate_name(result)} is {phrases.number(result.value)}, not "
                f"{phrases.threshold_text(result)}"
            )
    if failed:
        raise AssertionError(_live_failure(failed, item, question, row))
    if not wanted and all(value is None for value in values.values()):
        raise RagaugeError.of(
            "nothing-measured",
            f"the gold item of {plain(question)!r} says nothing that could be checked",
            hint="give it claims_any, must_contain, relevant evidence, or answerable: false",
        )


def _is_asked(part: str, only: str | None, citations: object) -> bool:
    if part == "citations":
        return citations is not None and only != "retrieval"
    return only is None or part == only


def _has_cut_off(name: str) -> bool:
    return registry.metrics()[name].at_k


def _demands(gates: Any, profile: Profile, depth: int) -> list[Gate]:
    """Gates on one question: how many there must be at least is not asked."""
    if gates is None:
        return []
    if isinstance(gates, str):
        asked = parse.parse_items(gates, profile, [depth])
    elif isinstance(gates, Mapping):
        asked = parse.parse_table(gates, profile, [depth], origin="gates")
    else:
        message = f"gates are a text or a table, got: {type(gates).__name__}"
        raise RagaugeError.of("usage", message, hint='for example gates="recall@5>=1"')
    return [replace(gate, min_n=1) for gate in asked]


def _gold_item(
    gold: Any, question: object, qid: str | None, fields: Mapping[str, Any] | None
) -> GoldItem:
    """The gold item that was given, or the one of a gold set that asks the question."""
    if not isinstance(question, str) or not question.strip():
        message = f"the question is a text, got: {question!r}"
        raise RagaugeError.of("usage", message, hint="give the question that was asked")
    if isinstance(gold, GoldItem):
        item = gold
    elif isinstance(gold, Mapping):
        item = load.load_gold([{"question": question, **gold}], fields=fields).items[0]
    else:
        refuse_no_rows("gold", gold)
        is_set = isinstance(gold, GoldSet)
        items = gold.items if is_set else load.load_gold(gold, fields=fields).items
        item = _asked_item(items, question, qid)
    if item.expect is None and (item.claims_any or item.relevant or item.anchors):
        return replace(item, expect="answer")  # it says what the answer is
    return item


def _asked_item(items: Sequence[GoldItem], question: str, qid: str | None) -> GoldItem:
    if qid is not None:
        fitting = [item for item in items if item.qid == qid]
        names = [item.qid for item in items]
    else:
        texts = {_folded(question)}
        fitting = [
            item
            for item in items
            if texts & {_folded(text) for text in (item.question, *item.paraphrases) if text}
        ]
        names = [item.question for item in items if item.question]
    if len(fitting) == 1:
        return fitting[0]
    name = qid if qid is not None else question
    if fitting:
        message = f"{len(fitting)} gold items ask {plain(name)!r}"
        listed = ", ".join(item.qid for item in fitting[:5])
        raise RagaugeError.of("usage", message, hint=f"say which one: qid= one of {listed}")
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {plain(near[0])!r}?" if near else f"the gold set has {len(items)} items"
    raise RagaugeError.of("usage", f"no gold item asks {plain(name)!r}", hint=hint)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _live_trace(
    item: GoldItem, question: str, answer: Any, hits: Any, citations: Any
) -> dict[str, Any]:
    text = answer if answer is None or isinstance(answer, str) else getattr(answer, "content", None)
    if answer is not None and not isinstance(text, str):
        message = f"the answer is a text, got: {type(answer).__name__}"
        raise RagaugeError.of("usage", message, hint="give what the system said, or None")
    is_list = isinstance(hits, Iterable) and not isinstance(hits, str | bytes | Mapping)
    if hits is not None and not is_list:
        message = f"hits are a list, the best first, got: {type(hits).__name__}"
        raise RagaugeError.of("usage", message, hint="give documents, ids or texts in a list")
    row: dict[str, Any] = {
        "qid": item.qid,
        "question": question,
        "answer": text,
        "hits": hits_of(hits),
        "turn": item.turn,
    }
    if citations is not None:
        row["citations"] = list(citations)
    return {name: value for name, value in row.items() if value is not None}


def _live_failure(
    failed: Sequence[str], item: GoldItem, question: str, row: Mapping[str, Any]
) -> str:
    """What was asked, expected, said and retrieved."""
    lines = [f"{'; '.join(failed)}", f"  asked:     {_short(question)}"]
    lines += _aligned("expected:", _expectations(item))
    answer = row.get("answer")
    lines.append(f"  said:      {'nothing' if answer is None else _short(answer)}")
    if "citations" in row:
        lines.append(f"  cited:     {_short(', '.join(map(str, row['citations'])) or 'nothing')}")
    hits = [f"{rank}. {_hit_text(hit)}" for rank, hit in enumerate(row["hits"], 1)]
    if len(hits) > _SHOWN_HITS:
        hits[_SHOWN_HITS:] = [f"... and {len(hits) - _SHOWN_HITS} more"]
    lines += _aligned("retrieved:", hits or ["nothing"])
    return "\n".join(lines)


def _aligned(head: str, texts: Sequence[str]) -> list[str]:
    return [f"  {head if not place else '':<10} {text}" for place, text in enumerate(texts)]


def _expectations(item: GoldItem) -> list[str]:
    """What a gold item says, in short lines."""
    places = [
        f"{anchor.doc} {', '.join(f'{span.start}-{span.end}' for span in anchor.spans)}".strip()
        + (f" {_short(anchor.quote)!r}" if anchor.quote else "")
        for anchor in item.anchors
    ]
    named = {
        "any of": item.claims_any,
        "all of": item.must_contain,
        "none of": item.forbidden,
        "like": item.references,
        "evidence": (*item.relevant, *places),
        "documents": item.relevant_docs,
        "section": None if item.anchor_section is None else (item.anchor_section,),
    }
    lines = [
        f"{name} {_short(', '.join(map(repr, values) if name.endswith('of') else values))}"
        for name, values in named.items()
        if values
    ]
    return [*(["a refusal"] if item.expect == "refuse" else []), *lines] or ["an answer"]


def _hit_text(hit: Any) -> str:
    if not isinstance(hit, Mapping):
        return _short(str(hit))
    names = [str(hit[name]) for name in ("id", "doc") if hit.get(name) is not None]
    text = hit.get("text")
    return " ".join([*map(_short, names), *([repr(_short(text))] if text else [])])


def _short(text: str) -> str:
    line = plain(" ".join(str(text).split()))
    return line if len(line) <= _SHOWN_TEXT else f"{line[:_SHOWN_TEXT]}…"
