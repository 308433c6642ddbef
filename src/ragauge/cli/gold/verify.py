"""`ragauge gold verify`: what changed in a gold set since it was frozen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import read_config

if TYPE_CHECKING:
    from ragauge.gold.lock import ChangedItem, ChangedText, FieldChange, LockDifference
    from ragauge.model.gold import GoldItem

_MOST = 20
_LONGEST = 72


@click.command("verify", short_help="Fail if frozen items changed, and show what changed.")
@click.argument("gold", metavar="GOLD")
@click.option(
    "--lock", metavar="FILE", help="The lock (default: beside GOLD, with the suffix .lock)."
)
@click.option("--corpus", metavar="DIR", help="Compare the text that ids stand for here.")
@click.option("--chunks", metavar="FILE", help="Where the chunks of an index lie, as JSON Lines.")
@click.option("--no-new", is_flag=True, help="Fail for items that the lock does not have, too.")
@click.option("--update", is_flag=True, help="Show what changed, then write the lock anew.")
def COMMAND(  # noqa: N802
    gold: str, lock: str | None, no_new: bool, update: bool, **places: Any
) -> int:
    """Compare a gold set with its lock, field by field.

    The set is read in the dialect that the lock names. Exit code 1 if an item changed or is gone,
    or is new under --no-new, or if an id stands for other text in the corpus than when the set was
    frozen. New items are told and pass; so are changes of fields that nothing reads. With --update
    the exit code is 0.
    """
    from ragauge.codes import ExitCode
    from ragauge.gold import lock as gold_lock
    from ragauge.text import plain

    done = gold_lock.verify(gold, lock, **places, fields=read_config(None).field_maps)
    difference = done.difference
    for line in [*_lines(difference, gold), *_text_lines(done.texts, gold)]:
        click.echo(plain(line))
    failed = bool(difference.changed or difference.removed or done.texts)
    failed = failed or (no_new and bool(difference.added))
    counts = {
        "changed": len(difference.changed),
        "removed": len(difference.removed),
        "added": len(difference.added),
        "unchanged": difference.unchanged + len(difference.remarked),
    }
    if done.texts:
        counts["of other text"] = len(done.texts)
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    click.echo(summary if failed else f"ok: {summary}")
    if places["corpus"] is not None and not done.lock.texts:
        click.echo("the lock has no fingerprints to compare: `gold freeze --corpus` adds them")
    if update and not done.is_same:
        gold_lock.update(done)
        click.echo(plain(f"wrote {done.path}"))
        click.echo(f"gold hash  {done.now.gold_hash}")
        return 0
    return int(ExitCode.GATE_FAILED) if failed else 0


def _lines(difference: LockDifference, gold: str) -> list[str]:
    lines = []
    for item in difference.changed[:_MOST]:
        lines += _changed_lines("changed", item, gold)
    lines += _more("changed", difference.changed)
    lines += [f"removed  {_name(item)}" for item in difference.removed[:_MOST]]
    lines += _more("removed", difference.removed)
    lines += [f"added    {_name(item)}  {_where(item, gold)}" for item in difference.added[:_MOST]]
    lines += _more("added", difference.added)
    for item in difference.remarked[:_MOST]:
        lines += _changed_lines("remark", item, gold)
    return [*lines, *_more("remark", difference.remarked)]


def _text_lines(texts: Sequence[ChangedText], gold: str) -> list[str]:
    lines = []
    for changed in texts[:_MOST]:
        lines.append(f"text     {_name(changed.item)}  {_where(changed.item, gold)}")
        lines.append(f"  {changed.name} stands for other text now: {changed.text}")
    return [*lines, *_more("text", texts)]


def _changed_lines(kind: str, changed: ChangedItem, gold: str) -> list[str]:
    lines = [f"{kind:<8} {_name(changed.item)}  {_where(changed.item, gold)}"]
    for change in changed.changes:
        lines += [f"  {change.field}", *_old_and_new(change)]
    for change in changed.unread:
        lines += [f"  {change.field} (nothing reads it)", *_old_and_new(change)]
    return lines


def _old_and_new(change: FieldChange) -> list[str]:
    old, new = _cut(_text(change.old), _text(change.new))
    return [f"    - {old}", f"    + {new}"]


def _text(value: Any) -> str:
    return "(absent)" if value is None else json.dumps(value, ensure_ascii=False)


def _cut(old: str, new: str) -> tuple[str, str]:
    """Two texts, shortened so that the first place where they differ is still there."""
    pairs = enumerate(zip(old, new, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))
    start = max(0, same - _LONGEST // 3) if max(len(old), len(new)) > _LONGEST else 0

    def part(text: str) -> str:
        head = "..." if start else ""
        tail = "..." if len(text) - start > _LONGEST else ""
        return f"{head}{text[start : start + _LONGEST]}{tail}"

    return part(old), part(new)


def _name(item: GoldItem) -> str:
    from ragauge.model.phrases import question_name

    return question_name(item.qid, item.turn)


def _where(item: GoldItem, gold: str) -> str:
    return f"{gold}:{item.line}" if item.line is not None else gold


def _more(kind: str, items: Sequence[object]) -> list[str]:
    return [f"{kind:<8} ... and {len(items) - _MOST} more"] if len(items) > _MOST else []
