"""`ragauge traces annotate`: write results for the service that has the traces, or send them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ragauge.cli.options import say
from ragauge.cli.output import spare
from ragauge.cli.streams import print_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragauge.report.annotations.annotation import AnnotatedTrace, Annotator, Entry


@click.command("annotate", short_help="Give results back to the service that has the traces.")
@click.argument("scores", metavar="SCORES")
@click.option(
    "--to",
    "service",
    required=True,
    metavar="NAME",
    help="langfuse (scores), phoenix (span annotations), or openinference (evaluation attributes, "
    "as OTLP).",
)
@click.option(
    "--traces",
    metavar="FILE",
    help="The traces that were scored, with their ids (default: the file that SCORES names).",
)
@click.option(
    "--metrics",
    "names",
    metavar="ID[,ID...]",
    help="Only these results; `retrieval.*` is a family (default: all that SCORES has).",
)
@click.option("-o", "out", metavar="FILE", help="Write them, as JSON Lines; nothing is sent.")
@click.option("--send", is_flag=True, help="Send them to the service.")
@click.option(
    "--host",
    metavar="URL",
    help="Where the service is, for --send (default: as its own variable in the environment says).",
)
def COMMAND(  # noqa: N802
    scores: str,
    service: str,
    traces: str | None,
    names: str | None,
    out: str | None,
    send: bool,
    host: str | None,
) -> int:
    """Annotate the traces of a service with what `ragauge score --full -o SCORES` measured of them.

    Each question's values and its label go to the trace that it was scored by, which has to have
    the service's own id as `trace_id`, and for Phoenix a `span_id`: imports keep them.

    Without --send nothing is sent. Keys are read from the environment: LANGFUSE_PUBLIC_KEY and
    LANGFUSE_SECRET_KEY, PHOENIX_API_KEY, OTEL_EXPORTER_OTLP_HEADERS. What is sent again replaces
    what is there.

    Exit code 2 if the service did not take everything; 5 if no trace has results and an id.
    """
    from contextlib import ExitStack

    from ragauge import registry
    from ragauge.files.atomic_write import write_atomically
    from ragauge.formats.load import open_source
    from ragauge.model.phrases import count
    from ragauge.model.scores_document import load_scores
    from ragauge.report.annotations.annotate import annotated_traces, trace_rows

    if send == (out is not None):
        raise click.UsageError("give -o FILE to write the results, or --send to send them")
    if host is not None and not send:
        raise click.UsageError("--host goes with --send")
    services = registry.annotators()
    if service not in services:
        raise registry.unknown_name("service", service, services)
    annotator: Annotator = services[service]
    saved = load_scores(scores)
    path = traces or saved.trace_name
    if out is not None:
        spare(out, {"file of scores": scores, "trace file": path})
    with ExitStack() as stack:
        source = open_source(stack, path, "traces")
        assert source is not None
        chosen = tuple(name.strip() for name in names.split(",")) if names else ()
        found = annotated_traces(saved, trace_rows(source), chosen)
    sendable = _sendable(found.traces, annotator)
    if found.without_id:
        say(f"warning: left out: {count(found.without_id, 'scored trace')} without `trace_id`")
    if found.shared:
        say(
            f"note: several traces of {count(found.shared, 'question')}: each is given the mean of "
            "its question"
        )
    entries = [entry for trace in sendable for entry in annotator.entries(trace)]
    _refuse_nothing(entries, path)
    if out is not None:
        import msgspec

        lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        write_atomically(out, lines.decode())
        lines_of = f"{count(len(entries), 'line')} for {count(len(sendable), 'trace')}"
        print_line(f"wrote {out}: {lines_of}")
        return 0
    return _send(annotator, entries, host)


def _sendable(traces: Sequence[AnnotatedTrace], annotator: Annotator) -> list[AnnotatedTrace]:
    """The traces that have all that the service needs; the others are counted by what they lack."""
    from ragauge.model.phrases import count

    lacking: dict[str, int] = {}
    sendable = []
    for trace in traces:
        lack = annotator.lacks(trace)
        if lack is None:
            sendable.append(trace)
        else:
            lacking[lack] = lacking.get(lack, 0) + 1
    for lack, number in lacking.items():
        say(f"warning: left out: {count(number, 'trace')} without {lack}")
    return sendable


def _refuse_nothing(entries: Sequence[Entry], path: str) -> None:
    from ragauge.errors import RagaugeError

    if not entries:
        raise RagaugeError.of(
            "nothing-measured",
            f"no trace of {path} has both results and the ids of the service",
            hint="import the traces with `ragauge traces import`, which keeps `trace_id` and "
            "`span_id`, and score them with --full",
        )


def _send(annotator: Annotator, entries: Sequence[Entry], host: str | None) -> int:
    from ragauge.errors import Problem, RagaugeError
    from ragauge.files.http_client import shown_url
    from ragauge.model.phrases import count
    from ragauge.report.annotations.send import AnnotationSender, host_of

    address = host_of(annotator, host, os.environ)
    sent = AnnotationSender(annotator, address, os.environ).send(entries)
    refused = f", refused {sent.rejected}" if sent.rejected else ""
    unsent = f", {sent.unsent} were not sent" if sent.unsent else ""
    summary = f"{shown_url(address)} took {sent.accepted} of {len(entries)}{refused}{unsent}"
    if sent.reasons:
        say(summary)
        hint = "what was taken stays; the same command again replaces it and sends the rest"
        raise RagaugeError(
            Problem("not-sent", f"{reason} ({count(number, 'time')})", hint, None)
            for reason, number in sent.reasons.most_common()
        )
    print_line(summary)
    return 0
