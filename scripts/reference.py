"""Writes the reference pages in `docs/reference/` from what the package itself knows.

Run as `python scripts/reference.py`; `--check` only says which pages are stale, and exits with 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click
import msgspec

import reference_words as words
from ragauge import registry
from ragauge.cli.main import root as command_group
from ragauge.codes import CODES, ExitCode
from ragauge.formats.schemas import catalogue
from ragauge.formats.schemas import descriptions as fieldwords
from ragauge.metrics.metric import Metric
from ragauge.model import phrases
from ragauge.model.dialect import Dialect
from ragauge.model.field_spellings import GOLD_SPELLINGS, HIT_IDS, TRACE_SPELLINGS
from ragauge.model.labels import CAUSES, GOOD, MEANINGS
from ragauge.model.metric_names import metric_label
from ragauge.model.profile import Profile
from reference_fields import scores_fields, ship_fields

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTICE = "<!-- Written by scripts/reference.py: run `make docs` instead of editing. -->"
SEEDS = (
    "The WFGY eval page and the WFGY example 08 are public pages of the WFGY Problem Map, each "
    "with a small scorer; the profiles `ship` and `smoke` reproduce what those scorers print."
)


class MissingWordsError(Exception):
    """A name of the package has no words in `reference_words.py`, or words have no name."""


def described(what: str, names: Iterable[str], texts: Mapping[str, str]) -> dict[str, str]:
    """The words for names, in the order of the words; no name and no text may be left over."""
    wanted = list(names)
    missing = [name for name in wanted if name not in texts]
    left_over = [name for name in texts if name not in wanted]
    if missing or left_over:
        raise MissingWordsError(
            f"{what} in scripts/reference_words.py or ragauge/schemas/words.py: add words for "
            f"{missing or 'nothing'}, remove {left_over or 'nothing'}"
        )
    return dict(texts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, and the empty line behind it."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    return [line(heads), f"|{'---|' * len(heads)}", *(line(row) for row in rows), ""]


def code(names: Iterable[str], *, joint: str = ", ") -> str:
    """Names as code, or a dash."""
    return joint.join(f"`{name}`" for name in names) or "-"


def shown_id(metric: Metric) -> str:
    """The id as users write it, with its cut-off."""
    return f"{metric.id}@k" if metric.at_k else metric.id


def opening(text: str) -> str:
    """A phrase as the opening of a sentence; names such as `ragauge.toml` keep their letters."""
    first = text.split(maxsplit=1)[0]
    return text if "." in first or first == "ragauge" else text[0].upper() + text[1:]


def anchor(heading: str) -> str:
    """The fragment that leads to a heading."""
    kept = (each for each in heading.lower().replace(" ", "-") if each.isalnum() or each in "-_")
    return "".join(kept)


def metrics_page() -> list[str]:
    """Every metric: formula, population, and a worked example."""
    metrics = registry.metrics()
    profiles = registry.profiles().values()
    lines = [
        "# Metrics", "",
        "Notation for one record: `G` the evidence of the gold item, `R_k` the first k hits, `C` "
        "the citations of the answer. A metric gives a value for each record of its population; "
        "the slots of a question are averaged first, then the questions are put together by "
        "their mean, unless the formula says otherwise. Records outside the population are left "
        "out by name and counted. 0/0 is null with the reason. A value has one id and one formula "
        "for ever: a changed formula gets a new version. `ragauge metrics ID` prints the same.",
        "",
        "Hits count in the order of the trace, whatever its ranks or scores say; a TREC run is "
        "sorted as trec_eval does it. A repeated id gains nothing again and shifts nothing. A "
        "missing trace counts as no hits in retrieval metrics, and is reported.", "",
        "The same words elsewhere:", "",
        *table(
            ["word", "here", "elsewhere"],
            [(f"{word}", code(ids), text) for word, ids, text in words.SAME_WORDS],
        ),
    ]  # fmt: skip
    lines += table(
        ["metric", "better", "what it is"],
        [
            (f"[`{shown_id(each)}`](#{anchor(shown_id(each))})", each.better, each.title)
            for each in metrics.values()
        ],
    )
    for metric in metrics.values():
        short = [
            f"`{alias}` in `{profile.name}`"
            for profile in profiles
            for alias, meant in profile.aliases.items()
            if meant == metric.id
        ]
        reasons = phrases.exclusion_reasons(metric)
        lines += [f"## {shown_id(metric)}", "", f"{metric.title}.", ""]
        label = metric_label(shown_id(metric))
        lines += [f"- **label**: {label}"] if label != shown_id(metric) else []
        lines += [
            f"- **formula**: {metric.formula}",
            f"- **over**: {metric.over.name}: {metric.over.meaning}",
            f"- **left out**, by name: {code(reasons)}",
            f"- **0/0**: {phrases.null_rule(metric)}",
            f"- **together**: {phrases.AGGREGATE_PHRASES[metric.aggregate]}",
            f"- **better**: {metric.better}; version {metric.version}; source: {metric.source}",
        ]
        if short:
            lines.append(f"- **short**: {', '.join(short)}")
        if metric.elsewhere:
            lines.append(f"- **compare**: {metric.elsewhere}")
        example = metric.example
        value = "null" if example.value is None else f"{example.value:g}"
        traces = example.trace if isinstance(example.trace, list) else [example.trace]
        rows = [json.dumps(row, ensure_ascii=False) for row in (example.gold, *traces)]
        noun = "trace" if len(traces) == 1 else "traces"
        lines += ["", f"A gold item and its {noun}:", "", "```json", *rows, "```", ""]
        lines += [f"Value {value}: {example.arithmetic}", ""]
    return lines


def commands_page() -> list[str]:
    """Every command with every option, as click knows them."""
    top = click.Context(command_group, info_name="ragauge", **command_group.context_settings)
    lines = ["# Commands", "", _sentence(command_group.help), ""]
    lines += _usage(command_group, top)
    for name in command_group.list_commands(top):
        command = command_group.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top)
        lines += [f"## ragauge {name}", ""]
        lines += [line.strip() for line in (command.help or "").strip().splitlines()] + [""]
        lines += _usage(command, context)
        for part in parts_of(command, context):
            inner = click.Context(part, info_name=part.name, parent=context)
            lines += [f"### {inner.command_path}", ""]
            lines += [line.strip() for line in (part.help or "").strip().splitlines()] + [""]
            lines += _usage(part, inner)
    lines += [_sentence(command_group.epilog) + " [Error codes and exit codes](errors.md)", ""]
    return lines


def parts_of(command: click.Command, context: click.Context) -> list[click.Command]:
    """The commands of a group; none for a command."""
    if not isinstance(command, click.Group):
        return []
    found = [command.get_command(context, name) for name in command.list_commands(context)]
    return [each for each in found if each is not None]


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _usage(command: click.Command, context: click.Context) -> list[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    lines = ["```text", f"{context.command_path} {usage}", "```", ""]
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    return lines + table(
        ["option", "value", "what it does"],
        [(code([*each.opts, *each.secondary_opts]), _value(each), _help(each)) for each in options],
    )


def _value(option: click.Option) -> str:
    if option.is_flag or option.count:
        return ""
    kind = option.type
    if isinstance(kind, click.Choice):
        return code((str(each) for each in kind.choices), joint=" or ")
    if isinstance(kind, click.IntRange):
        return f"{kind.min} to {kind.max}" if kind.max is not None else f"from {kind.min}"
    return f"`{option.metavar or kind.name.upper()}`"


def _help(option: click.Option) -> str:
    default = "" if option.is_flag or not isinstance(option.default, str | int) else option.default
    return f"{option.help or ''}{f' Default: `{default}`.' if default else ''}".strip()


def errors_page() -> list[str]:
    """Exit codes, error codes and labels."""
    exits = described("EXIT_CODES", map(str, map(int, ExitCode)),
                      {str(key): text for key, text in words.EXIT_CODES.items()})  # fmt: skip
    lines = [
        "# Exit codes, error codes and labels", "",
        "`ragauge explain CODE` prints the same for one code, exit code or label.", "",
        "## Exit codes", "",
    ]  # fmt: skip
    lines += table(["code", "meaning"], exits.items())
    lines += [
        "Every command has the same codes, and never 0 for a run in which nothing was measured. "
        "`ragauge score` and `ragauge gate` print their report with 0, 1, 4 and 5; with 2, 3 and "
        "70 there is none, and the error is on stderr. Where a gate failed and the run is not "
        "evaluable as well, the code is 4 and the report names both. In Python the same number "
        "is `int(verdict.exit_code)`.", "",
    ]  # fmt: skip
    for exit_code in ExitCode:
        entries = [each for each in CODES.values() if each.exit == exit_code]
        if not entries:
            continue
        lines += [f"## Error codes with exit code {int(exit_code)}", ""]
        for entry in entries:
            lines += [f"### {entry.name}", "", f"{opening(entry.title)}. {entry.explanation}"]
            lines += [""]
    lines += [
        "## Labels", "",
        "One word for what came of a record, from best to worst; a question with several records "
        f"shows its worst. {code(GOOD, joint=' and ')} are good, the others are what to look at.",
        "",
    ]  # fmt: skip
    lines += table(["label", "meaning"], [(f"`{k}`", v) for k, v in MEANINGS.items()])
    lines += [
        "", "## Causes", "",
        "What a label comes from: the first step that failed, in the order in which an answer is "
        "made. A question with several records shows the cause of most of them.",
        "",
    ]  # fmt: skip
    return lines + table(["cause", "meaning"], [(f"`{k}`", v) for k, v in CAUSES.items()])


def profiles_page() -> list[str]:
    """Every profile: metrics, short names, gates and join rules."""
    lines = [
        "# Profiles", "",
        "A profile is a named choice of metrics, short names, join rules and gates. Without "
        "`--profile` the [dialect](dialects.md) of the files chooses.", "",
    ]  # fmt: skip
    for profile in registry.profiles().values():
        lines += [f"## {profile.name}", "", f"{profile.title}. Source: {profile.source}.", ""]
        lines += [f"Cut-offs: {', '.join(map(str, profile.k))}. Read as: `{profile.dialect}`."]
        if profile.reports:
            own = ", ".join(f"`--format {key}`" for key in profile.reports)
            lines[-1] += f" Prints {own} as its source does."
        lines += ["", *_profile_metrics(profile), "How traces meet gold items:", ""]
        for rule, value in msgspec.to_builtins(profile.join).items():
            if rule not in words.JOIN_RULES or value not in words.JOIN_RULES[rule]:
                raise MissingWordsError(f"JOIN_RULES: add words for {rule} = {value!r}")
            lines.append(f"- `{rule} = {value}`: {words.JOIN_RULES[rule][value]}")
        lines.append("")
    return lines


def _demand(gate: object, better: str) -> str:
    """What a gate asks for; a zone of ΔS by its name."""
    if isinstance(gate, dict):
        return f"zone {gate['zone']}"
    return f"{'>=' if better == 'higher' else '<='} {gate}"


def _profile_metrics(profile: Profile) -> list[str]:
    rows = []
    chosen = {
        each.metric.id: each.metric for each in registry.select(profile.metrics, profile.k[:1])
    }
    for metric in chosen.values():
        short = [alias for alias, meant in profile.aliases.items() if meant == metric.id]
        demands = [
            _demand(profile.gates[alias], metric.better)
            for alias in short
            if alias in profile.gates
        ]
        drops: list[str] = []
        drops += [
            f"drop <= {gate['max_drop']}"
            for gate in profile.gates.values()
            if isinstance(gate, dict)
            and "max_drop" in gate
            and gate["metric"].partition("@")[0] == metric.id
        ]
        empty = profile.empty.get(metric.id)
        name = shown_id(metric)
        rows.append((
            f"[`{name}`](metrics.md#{anchor(name)})", code(short),
            ", ".join([*(f"`{each}`" for each in demands), *(f"`{each}`" for each in drops)])
            or "-",
            "null" if empty is None else f"{empty:g}",
        ))  # fmt: skip
    lines = table(["metric", "short name", "gate", "0/0"], rows)
    if profile.deprecated:
        lines += [
            f"Deprecated short names: {code(profile.deprecated)}. A gate that is written with one "
            "keeps its meaning, and the command prints a note with the id to write instead.",
            "",
        ]
    return lines


def dialects_page() -> list[str]:
    """Every dialect, and every spelling of every field."""
    lines = [
        "# Dialects", "",
        "A dialect is a family of files: the names that it owns win over any other spelling in a "
        "row. Whatever the dialect, a field is read by every name in the tables at the end; two "
        "spellings with different values are an error unless the dialect owns one of them.", "",
    ]  # fmt: skip
    for dialect in registry.dialects().values():
        lines += [f"## {dialect.name}", "", f"{opening(dialect.title)}.", ""]
        lines += [*_dialect(dialect), ""]
    gold = described("GOLD_FIELDS", GOLD_SPELLINGS, fieldwords.GOLD_FIELDS)
    trace = described("TRACE_FIELDS", TRACE_SPELLINGS, fieldwords.TRACE_FIELDS)
    for title, spellings, texts in (
        ("Gold fields", GOLD_SPELLINGS, gold),
        ("Trace fields", TRACE_SPELLINGS, trace),
    ):
        lines += [f"## {title}", ""]
        lines += table(
            ["field", "read from", "meaning"],
            [(name, code(undamaged(spellings[name])), text) for name, text in texts.items()],
        )
    lines += [
        f"Hits may also stand under `retrieval`. A hit or a citation that is an object has its id "
        f"in {code(HIT_IDS, joint=' or ')}. Names with Greek letters are also read as files show "
        "them whose UTF-8 was decoded as cp1252, latin-1, MacRoman, cp437 or cp850. Fields that "
        "nothing reads are kept, not dropped.", "",
    ]  # fmt: skip
    return lines


def undamaged(names: Iterable[str]) -> list[str]:
    """Names as they are meant, without the forms that a wrong decoding gave them."""
    return [name for name in names if all(each.isascii() or each in "Δ∆λ" for each in name)]


def _dialect(dialect: Dialect) -> list[str]:
    lines = [f"- profile if none is named: `{dialect.profile}`; source: {dialect.source}"]
    for kind, marks, own in (
        ("gold", dialect.gold_marks, dialect.own_gold),
        ("trace", dialect.trace_marks, dialect.own_trace),
    ):
        owned = ", ".join(f"{field} from {code(names)}" for field, names in own.items())
        if marks:
            known = code(sorted(undamaged(marks)))
            lines.append(f"- {kind}: recognised by {known}; owns {owned}")
    if dialect.strip_citations:
        lines.append("- blanks around cited ids are dropped")
    closed = [*sorted(dialect.closed_gold), *sorted(dialect.closed_trace)]
    if closed:
        lines.append(
            f"- under `--profile {dialect.profile}`, asked for by name, these are not read, and a "
            f"row that has one is a warning: {code(closed)}; `--dialect native` reads them"
        )
    return lines


def scores_page() -> list[str]:
    """Every key of the scores document; the keys come from real documents."""
    return [
        "# The scores document", "",
        "`ragauge score --format json` prints it and `-o FILE.json` writes it; `--full` adds "
        "`questions`. `ragauge gate` reads it again. "
        "In the names below, `[]` stands for each element of a list, and a word in capitals for "
        "any key.", "",
        *_keys("SCORES_FIELDS", scores_fields(), fieldwords.SCORES_FIELDS),
        "## Under the profile ship", "",
        "`--format json` prints these keys alone, as the source of the profile does; with "
        "`--full` they stand in front of the others.", "",
        *_keys("SHIP_FIELDS", ship_fields(), words.SHIP_FIELDS),
    ]  # fmt: skip


SCHEMAS = {
    "gold": "a gold set: one item, as on a line of JSON Lines, or an array of items",
    "trace": "traces: one, as on a line of JSON Lines, or an array of them",
    "scores": "the [scores document](scores-json.md) that `ragauge score --full -o FILE.json` "
    "writes",
    "compare": "what `ragauge compare --format json` prints",
}


def schemas_page() -> list[str]:
    """Every JSON schema, and the keys of the comparison."""
    rows = [
        (f"[{name}.json](schemas/{name}.json)", f"`{schema()['$id']}`",
         described("SCHEMAS", catalogue.SCHEMAS, SCHEMAS)[name])
        for name, schema in catalogue.SCHEMAS.items()
    ]  # fmt: skip
    return [
        "# JSON Schemas", "",
        "For editors, for checks in other languages, and for those who write such files. "
        "`ragauge schema gold` prints the first of them, and so on. They are written in JSON "
        "Schema 2020-12 and need no network: the ids are names and no addresses.", "",
        *table(["file", "id", "describes"], rows),
        "Gold and traces are described with every spelling of every "
        "[field](dialects.md#gold-fields); null counts as absent, and fields that nothing reads "
        "are allowed. What fits a schema is read by ragauge, but for what no schema can say: that "
        "the spellings of a field agree, that start lies before end, that offsets have one unit, "
        "that a list of ΔS is as long as the list of hits, that ids stand once. `ragauge validate` "
        "checks all of it. For JSON Schema `1.0` is a whole number, for ragauge it is not.", "",
        "Gold is described as it is scored without a corpus. Evidence that is a quote without "
        "offsets, `{doc, quote}`, is scored only where `--corpus` is given, and does not fit; "
        "[`ragauge gold pin`](../how-to/gold-for-any-chunker.md) finds its bytes in a corpus and "
        "makes it fit.", "",
        "## The comparison", "",
        "In the names below, `[]` stands for each element of a list, and a word in capitals for "
        "any key.", "",
        *table(
            ["key", "meaning"],
            [(f"`{key}`", text) for key, text in fieldwords.COMPARE_FIELDS.items()
             if not key.startswith(("runs.b", "aggregate_b", "verdict."))],
        ),
        "`runs.b` and `aggregate_b` have the keys of `runs.a` and `aggregate_a`; `verdict` has "
        "those of the [scores document](scores-json.md).", "",
    ]  # fmt: skip


def _keys(what: str, types: Mapping[str, str], texts: Mapping[str, str]) -> list[str]:
    rows = described(what, types, texts).items()
    return table(["key", "type", "meaning"], [(f"`{key}`", types[key], text) for key, text in rows])


PAGES: dict[str, Callable[[], list[str]]] = {
    "metrics.md": metrics_page,
    "commands.md": commands_page,
    "errors.md": errors_page,
    "profiles.md": profiles_page,
    "dialects.md": dialects_page,
    "scores-json.md": scores_page,
    "schemas.md": schemas_page,
}


def pages() -> dict[str, str]:
    """The text of every page by its name."""
    made = {}
    for name, page in PAGES.items():
        title, *rest = page()
        text = "\n".join([title, "", NOTICE, *rest]).rstrip() + "\n"
        made[name] = text if "seed 0" not in text else f"{text}\n{SEEDS}\n"
    made |= {f"schemas/{name}.json": catalogue.schema_text(name) for name in catalogue.SCHEMAS}
    return made


def stale(folder: Path) -> list[str]:
    """The pages that are missing, differ from what the package knows, or should not be there."""
    made = pages()
    found = [*folder.glob("*.md"), *folder.glob("schemas/*.json")]
    there = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in found}
    return sorted(name for name in made.keys() | there if made.get(name) != there.get(name))


def main(arguments: Sequence[str] | None = None, *, folder: Path = FOLDER) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; name stale pages")
    options = parser.parse_args(arguments)
    try:
        names = stale(folder)
    except MissingWordsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.check:
        for name in names:
            print(f"error: docs/reference/{name} is stale: run `make docs`", file=sys.stderr)
        return 1 if names else 0
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    made = pages()
    for name in names:
        if name in made:
            (folder / name).write_text(made[name], "utf-8", newline="\n")
            print(f"wrote docs/reference/{name}")
        else:
            (folder / name).unlink()
            print(f"removed docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
