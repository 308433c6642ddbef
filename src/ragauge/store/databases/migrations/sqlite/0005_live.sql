-- What the live monitor keeps beside minutes and windows: traces, tokens, alerts, webhooks to be
-- sent, and pairs of live and shadow results. Times are milliseconds from 1970 in UTC.

-- One trace that was sampled. `body` is the trace as a native row of JSON, packed, redacted before it
-- came here; it goes first when data grows old. `measured` are its packed values.
CREATE TABLE live_traces (
    tenant TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    app TEXT NOT NULL,
    build TEXT NOT NULL,
    index_hash TEXT NOT NULL,
    question_type TEXT NOT NULL,
    arrived INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    window_number INTEGER,
    state TEXT NOT NULL CHECK (state IN ('scored', 'errored', 'unusable')),
    skewed INTEGER NOT NULL DEFAULT 0 CHECK (skewed IN (0, 1)),
    user_key TEXT,
    question_key TEXT,
    gold_id TEXT,
    sample_rate REAL NOT NULL,
    index_facts TEXT NOT NULL DEFAULT '{}',
    body BLOB,
    measured BLOB,
    PRIMARY KEY (tenant, trace_id)
) STRICT;

CREATE INDEX live_traces_by_minute ON live_traces (tenant, app, minute);

CREATE INDEX live_traces_by_window ON live_traces (window_number);

CREATE INDEX live_traces_by_user ON live_traces (tenant, user_key) WHERE user_key IS NOT NULL;

-- How many spans and traces met which end, by minute of arrival.
CREATE TABLE live_counts (
    tenant TEXT NOT NULL,
    minute INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    spans INTEGER NOT NULL,
    traces INTEGER NOT NULL,
    PRIMARY KEY (tenant, minute, outcome)
) STRICT, WITHOUT ROWID;

-- A token is shown once; its hash stays. Scopes are ingest, read and admin, parted by commas.
CREATE TABLE live_tokens (
    token_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    scopes TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT '',
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER
) STRICT, WITHOUT ROWID;

-- A browser that has logged in with a token.
CREATE TABLE live_sessions (
    session_hash TEXT PRIMARY KEY,
    token_id TEXT NOT NULL REFERENCES live_tokens (token_id) ON DELETE CASCADE,
    csrf TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The state of each rule for each series, and every change of it.
CREATE TABLE live_alerts (
    tenant TEXT NOT NULL,
    app TEXT NOT NULL,
    rule TEXT NOT NULL,
    series TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('inactive', 'pending', 'firing', 'resolved', 'no-data', 'too-little-data')),
    since INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    record_json TEXT NOT NULL,
    PRIMARY KEY (tenant, app, rule, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE live_alert_events (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    app TEXT NOT NULL,
    rule TEXT NOT NULL,
    series TEXT NOT NULL,
    at INTEGER NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    record_json TEXT NOT NULL
) STRICT;

-- The stream of events of a tenant goes by number.
CREATE INDEX live_alert_events_by_tenant ON live_alert_events (tenant, number);

CREATE INDEX eval_live_windows_by_tenant ON eval_live_windows (tenant, number);

-- Messages to webhooks, until they were taken or given up; a key is sent once.
CREATE TABLE live_outbox (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    dedupe_key TEXT NOT NULL UNIQUE,
    webhook TEXT NOT NULL,
    created INTEGER NOT NULL,
    payload TEXT NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    next_try INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'given-up')),
    last_error TEXT
) STRICT;

CREATE INDEX live_outbox_by_time ON live_outbox (state, next_try);

-- One question that a second system was asked: the shadow, the shadow once more (`again`), or live
-- once more (`self`). A row is there before the question is asked, so that no other server asks it.
-- `body` is the answer as a trace, packed and redacted; `measured` is what was found, as JSON.
CREATE TABLE live_pairs (
    tenant TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('shadow', 'again', 'self')),
    app TEXT NOT NULL,
    live TEXT NOT NULL,
    shadow TEXT NOT NULL,
    question_key TEXT NOT NULL DEFAULT '',
    asked INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('asking', 'answered', 'errored', 'timed-out', 'skipped')),
    body BLOB,
    measured BLOB,
    PRIMARY KEY (tenant, trace_id, role)
) STRICT;

CREATE INDEX live_pairs_by_minute ON live_pairs (tenant, app, minute);

-- The command that followed a decision, and how it ended. It is begun once.
CREATE TABLE live_actions (
    decision INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    command TEXT NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    exit_code INTEGER,
    output TEXT
) STRICT;

-- Questions of live traffic that somebody wants in the gold set.
CREATE TABLE live_gold_candidates (
    tenant TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    created INTEGER NOT NULL,
    item_json TEXT NOT NULL,
    PRIMARY KEY (tenant, trace_id)
) STRICT, WITHOUT ROWID;

-- Secrets of the monitor itself: the key of the hashes that users are known by.
CREATE TABLE live_keys (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How far the minutes have come: `sealed` minutes take no more traces, and `aggregated` ones have
-- their sums and have been looked at for windows that end.
CREATE TABLE live_marks (
    name TEXT PRIMARY KEY,
    minute INTEGER NOT NULL
) STRICT;

-- The gold sets that windows were measured with, packed, by a digest of their rows.
CREATE TABLE live_gold (
    digest TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

-- What was deleted on demand, for a while: a trace that a worker held meanwhile is not stored after it.
CREATE TABLE live_deletions (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('trace', 'user')),
    name TEXT NOT NULL,
    deleted INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, name)
) STRICT, WITHOUT ROWID;
