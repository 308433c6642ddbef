"""`ragauge calibrate`: how well ΔS of an embedder separates, and bands that fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import (
    ALLOW_HOST_OPTION,
    EMBED_OPTIONS,
    CommandOptions,
    options,
    permit_embedder,
    rounded,
    say,
)
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from ragauge.diagnose.calibrate import Calibration, DistanceGroup
    from ragauge.model.semantic import Bands

_KINDS = {"positive": "evidence", "negative": "hard negatives", "random": "random texts"}


@click.command("calibrate", short_help="Fit the bands of ΔS to an embedder.")
@click.argument("gold", metavar="GOLD")
@click.option("--traces", metavar="FILE", help="Traces whose hits have texts.")
@click.option("--corpus", metavar="DIR", help="A corpus, whose blocks are texts.")
@click.option("--chunks", metavar="FILE", help="A list of chunks, with texts or places.")
@options(EMBED_OPTIONS)
@options([ANY_FORMAT, CONFIG_OPTION, ALLOW_HOST_OPTION])
@click.option("-o", "out", metavar="FILE", help="Write the bands as TOML, for ragauge.toml.")
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Measure ΔS of questions with their evidence, their hard negatives and random texts.

    Texts come from traces, a corpus or a list of chunks. Shown are percentiles, how the zones in
    use separate the three, and bands that would fit this embedder, with how sure they are. Where ΔS
    does not tell evidence from hard negatives, what is written says that gates on ΔS are not to be
    judged. Exit code 5 if no evidence has a text, 4 if -o asks for bands and there are too few
    pairs.
    """
    import msgspec

    from ragauge.errors import RagaugeError
    from ragauge.files.atomic_write import write_atomically

    asked = CommandOptions(**values)
    out = asked.out
    asked.spare(
        [] if out is None else [out],
        {
            "gold set": asked.gold,
            "trace file": asked.traces,
            "list of chunks": asked.configured("chunks"),
            "corpus": asked.configured("corpus"),
            "cache of vectors": asked.configured("embed_cache"),
        },
    )
    calibration = _measure(asked)
    if not calibration.groups["positive"].n:
        message = "no evidence of the gold set has a text"
        hint = "give the texts with --traces, --corpus or --chunks"
        raise RagaugeError.of("nothing-measured", message, hint=hint)
    if out is not None and calibration.proposed is None:
        hint = "nothing was written; without -o the measurements are shown"
        raise RagaugeError.of("too-few", f"no bands are proposed: {calibration.reason}", hint=hint)
    for note in calibration.notes:
        say(f"warning: {note}")
    if asked.format_name == "json":
        print_json(rounded(msgspec.to_builtins(calibration)))
    else:
        print_lines(_table(calibration))
    if out is not None and calibration.proposed is not None:
        write_atomically(out, _toml(calibration.embedder, calibration.proposed))
    return 0


def _measure(asked: CommandOptions) -> Calibration:
    from contextlib import ExitStack

    from ragauge.diagnose.calibrate import calibrate
    from ragauge.embed.measure import open_measurer
    from ragauge.formats.load import load_gold, load_traces
    from ragauge.scoring.known_texts import TextsById, known_texts

    config, embed = asked.config, asked.configured("embed")
    cache = asked.configured("embed_cache")
    if embed is None:
        raise click.UsageError("no embedder: give --embed NAME, or set `embed` in ragauge.toml")
    permit_embedder(config, asked.embed)
    with ExitStack() as stack:
        texts = known_texts(stack, asked.configured("chunks"), asked.configured("corpus"))
        items = load_gold(asked.gold).items
        trace_rows = load_traces(asked.traces).traces if asked.traces is not None else ()
        measurer = stack.enter_context(open_measurer(embed, settings=config.embedders, cache=cache))
        return calibrate(items, TextsById(texts, trace_rows), measurer, bands=config.bands)


def _table(calibration: Calibration) -> list[str]:
    kind = " (lexical)" if calibration.lexical else ""
    bands = calibration.bands
    lines = [
        f"embedder   {calibration.embedder}{kind}",
        f"bands      {_bands_text(bands)}",
        "",
        f"{'ΔS of questions with':<22}{'n':>6}{'p10':>8}{'p50':>8}{'p90':>8}"
        f"{'stable':>9}{'between':>9}{'risk':>8}{'target':>8}",
    ]
    lines += [f"{title:<22}{_row(calibration.groups[name])}" for name, title in _KINDS.items()]
    lines.append("")
    for name, share in calibration.auc.items():
        auc = "-" if share is None else f"{share:.4f}"
        lines.append(f"evidence nearer than {_KINDS[name] + ':':<16}{auc:>8}  (AUC)")
    lines += _proposed_lines(calibration)
    lines += [f"left out   {n} {reason}" for reason, n in calibration.left_out.items()]
    return lines


def _proposed_lines(calibration: Calibration) -> list[str]:
    proposed = calibration.proposed
    if proposed is None:
        return [f"proposed   nothing: {calibration.reason}"]
    fit = proposed.calibration
    assert fit is not None
    lines = [f"proposed   {_bands_text(proposed)}"]
    if not fit.judged:
        lines = [f"proposed   no bands: gates on ΔS are not judged (AUC {fit.auc:.2f})"]
    edges = [f"{low:.2f} to {high:.2f}" for low, high in (fit.stable, fit.risk)]
    lines.append(
        f"           stable {edges[0]}, risk {edges[1]} with other questions (95 %), from "
        f"{fit.evidence} pairs with evidence and {fit.others} with {fit.against}"
    )
    if calibration.passes is not None and calibration.fails is not None:
        lines.append(
            f"           on the other half of the questions evidence passes in "
            f"{calibration.passes:.1%} of resamples, {fit.against} fail in {calibration.fails:.1%}"
        )
    return lines


def _row(group: DistanceGroup) -> str:
    if not group.n:
        return f"{0:>6}" + "       -" * 3 + "        -" * 2 + "       -" * 2
    cells = f"{group.n:>6}"
    cells += "".join(f"{group.percentiles[name]:>8.4f}" for name in ("p10", "p50", "p90"))
    shares = [group.zones["stable"], group.zones["transitional"], group.zones["risk"]]
    cells += "".join(
        f"{share * 100:>{width - 2}.1f} %" for share, width in zip(shares, (9, 9, 8), strict=True)
    )
    return cells + f"{(group.on_target or 0) * 100:>6.1f} %"


def _bands_text(bands: Bands) -> str:
    return f"stable < {bands.stable:.2f}, target <= {bands.target:.2f}, risk >= {bands.risk:.2f}"


def _toml(embedder: str, bands: Bands) -> str:
    import json

    name = json.dumps(embedder, ensure_ascii=False)
    text = (
        f"[bands.{name}]\n"
        f"stable = {bands.stable:.2f}\ntarget = {bands.target:.2f}\nrisk = {bands.risk:.2f}\n"
    )
    fit = bands.calibration
    if fit is not None:
        text += (
            f"\n[bands.{name}.calibration]\nauc = {fit.auc}\nevidence = {fit.evidence}\n"
            f"others = {fit.others}\nagainst = {json.dumps(fit.against)}\n"
            f"stable = {list(fit.stable)}\nrisk = {list(fit.risk)}\n"
            f"judged = {json.dumps(fit.judged)}\n"
        )
    return text
