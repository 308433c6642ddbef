"""The table `[live]` of ragauge.toml: what `ragauge serve` samples, keeps, watches and mirrors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from ragauge.config import Config, faulty_key
from ragauge.errors import RagaugeError
from ragauge.files.http_client import WebError, host_and_port

Rate = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
HINT = "docs/live-settings.md has the keys of [live]"


class Sampling(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which traces are kept, by a stable hash of the trace or of its session."""

    rate: Rate = 0.01
    errors: Rate = 1.0
    gold: Rate = 1.0
    by: Literal["trace", "session"] = "trace"  # all traces of a session get one decision


class Redaction(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is taken out before anything is written, beside what looks like a secret."""

    fields: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    texts: bool = False  # questions, answers and texts of hits are not kept at all


class Retention(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """After how many days each class of data is deleted."""

    bodies: Count = 14
    traces: Count = 60
    windows: Count = 400


class WindowRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a window closes: both are reached, or it is too old for that."""

    samples: Count = 200
    minutes: Count = 5
    longest_hours: Count = 24


class IngestLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the collector takes at most; above, it answers 413 or 429."""

    body_bytes: Count = 16 * 2**20
    unpacked_bytes: Count = 32 * 2**20
    ratio: Count = 500
    spool_bytes: Count = 2**30
    waiting_bytes: Count = 16 * 2**20  # of requests that are being read
    read_seconds: Seconds = 10  # for one request to come in
    requests_per_second: Count = 2000  # of one token
    series: Count = 2000


class AlertRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule: a metric, its threshold, and for how long it must hold before it fires."""

    metric: str
    below: float | None = None
    above: float | None = None
    rise: Annotated[float, Meta(gt=0)] | None = None  # over the baseline, as a share: 0.3 is 30 %
    for_minutes: Annotated[float, Meta(ge=0)] = 5
    keep_minutes: Annotated[float, Meta(ge=0)] = 5
    app: str | None = None
    by: Literal["app", "build"] = "app"
    policy: Literal["interval", "point"] = "interval"
    least: Count = 30  # values in a window below which nothing is judged

    def __post_init__(self) -> None:
        """A rule has one direction: quality has a floor, errors and times have a ceiling."""
        if sum(limit is not None for limit in (self.below, self.above, self.rise)) != 1:
            raise ValueError("a rule takes one of `below`, `above` and `rise`")


class Webhook(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where alerts and decisions are told; the secret is the name of a variable."""

    url: str
    secret_variable: str | None = None
    per_minute: Count = 30

    def __post_init__(self) -> None:
        """Refuse what nobody can be told by; a URL may be a secret, and is not shown."""
        try:
            host_and_port(self.url)
        except WebError:
            raise ValueError("`url` must be http://HOST/PATH or https://HOST/PATH") from None


class Alerts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules, and who is told."""

    defaults: bool = True
    rules: dict[str, AlertRule] = {}
    off: tuple[str, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    no_data_minutes: Count = 60
    log: str | None = None  # a file of JSON lines, beside the log of the server


class PromotionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a shadow must show before it is promoted. Bounds are those of 95 % intervals.

    coverage_margin    the share of validly cited answers may be lower than live's by so much
    citation_accuracy  the least share of answers whose citations are all valid
    delta_s            the largest median of ΔS
    recall_margin      live's top 5 may be covered by so much less than live covers them itself
    flip_rate          the share of questions with changing outcomes is no higher than live's, and
                       its upper bound is below this: from there on the alert `lambda-flip` fires
    failed             the largest share of questions that were not answered in time, or at all
    index_only         the shadow gives no answers: what needs them is not judged
    """

    coverage_margin: Rate = 0.02
    citation_accuracy: Rate = 0.95
    delta_s: Annotated[float, Meta(ge=0, le=2)] = 0.40
    recall_margin: Rate = 0.02
    flip_rate: Rate = 0.10
    failed: Rate = 0.01
    index_only: bool = False


class MirrorRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A second system that sampled questions are mirrored to, and what decides about it."""

    target: str
    live: str | None = None  # the live system as a target, to be asked again: its self-agreement
    rate: Rate = 0.01  # of live traffic; only what sampling keeps can be mirrored
    self_rate: Rate = 0.1  # of the mirrored questions: both systems are asked once more
    qps: Annotated[float, Meta(gt=0)] = 2
    timeout: Seconds = 10
    errors_to_open: Count = 5
    open_seconds: Seconds = 60
    least_pairs: Count = 200
    least_hours: Annotated[float, Meta(ge=0)] = 24
    most_pairs: Count = 5000  # evidence of one decision; of more, a stable sample is taken
    promote: PromotionRule = PromotionRule()
    on_promote: str | None = None
    on_roll_back: str | None = None
    k: Count = 10  # hits that the shadow is asked for
    corpus: str | None = None  # for targets that search a corpus themselves, as bm25:
    chunks: str | None = None
    options: dict[str, Any] = {}
    live_options: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """What follows a decision is a program: nothing else can be told from a typing error."""
        for name in ("on_promote", "on_roll_back"):
            command = getattr(self, name)
            if command is not None and not command.removeprefix("command:").strip():
                raise ValueError(f"`{name}` names no program")
            if command is not None and not command.startswith("command:"):
                raise ValueError(f'`{name}` takes "command:PROGRAM ARGUMENT ..."')


class LiveSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of `[live]`. Everything has a default: an empty table is a server on this machine."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 4319
    store: str | None = None  # else that of ragauge.toml, else sqlite:///ragauge-live.db
    spool: str | None = None  # a folder; else beside the store
    app: str = "default"  # for traces that name none
    gold: str | None = None  # else that of ragauge.toml
    corpus: str | None = None  # likewise: ids are held against its manifest
    assemble_after: Seconds = 10  # without a new span
    assemble_root: Seconds = 2  # after the root span has ended
    assemble_longest: Seconds = 300
    sampling: Sampling = Sampling()
    redaction: Redaction = Redaction()
    retention: Retention = Retention()
    window: WindowRule = WindowRule()
    limits: IngestLimits = IngestLimits()
    alerts: Alerts = Alerts()
    shadow: MirrorRule | None = None


def live_settings(config: Config) -> LiveSettings:
    """What a project's file says of its live monitor; a fault has its line."""
    try:
        return msgspec.convert(config.live, LiveSettings, strict=True)
    except msgspec.ValidationError as error:
        message = str(error)
        place = config.place("live", *faulty_key(config.live, message, LiveSettings))
        raise RagaugeError.of("bad-config", f"[live]: {message}", place=place, hint=HINT) from error
