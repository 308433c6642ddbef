-- Where a run comes from, slices in a column of their own, decisions, and windows of live traffic.
-- The packed slices are taken out of aggregate_json by `pack_slices` behind these statements.

ALTER TABLE eval_runs ADD COLUMN branch TEXT;
ALTER TABLE eval_runs ADD COLUMN author TEXT;
ALTER TABLE eval_runs ADD COLUMN dirty INTEGER CHECK (dirty IN (0, 1));

-- `hits`: the results have their hits and citations and no texts, enough to be compared.
ALTER TABLE eval_runs ADD COLUMN kept TEXT NOT NULL DEFAULT 'traces'
    CHECK (kept IN ('traces', 'hits'));

ALTER TABLE eval_scorings ADD COLUMN slices BLOB NOT NULL DEFAULT x'';

-- What `live` and `shadow` name are runs or indexes; a decision outlives both. record_json is the
-- decision as it was printed, with the value, n, interval and threshold of each rule; evidence is
-- what the rules were computed from, packed, so that the same bytes can be computed again.
CREATE TABLE eval_decisions (
    number INTEGER PRIMARY KEY,
    created_at TEXT NOT NULL,
    tenant TEXT NOT NULL DEFAULT '',
    app TEXT NOT NULL,
    live TEXT NOT NULL,
    shadow TEXT NOT NULL,
    begins_at TEXT,
    ends_at TEXT,
    decision TEXT NOT NULL CHECK (decision IN ('promote', 'hold', 'roll-back')),
    ragauge_version TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    record_json TEXT NOT NULL,
    record_hash TEXT NOT NULL,
    evidence BLOB NOT NULL,
    UNIQUE (tenant, app, live, shadow, begins_at, ends_at)
) STRICT;

CREATE TRIGGER eval_decisions_stay BEFORE UPDATE ON eval_decisions
BEGIN SELECT RAISE(ABORT, 'a decision is never changed'); END;

CREATE TRIGGER eval_decisions_remain BEFORE DELETE ON eval_decisions
BEGIN SELECT RAISE(ABORT, 'a decision is never deleted'); END;

-- One minute of live traffic: `minute` counts from 1970 in UTC, `partials` are the packed sums of
-- whole numbers from which any window is computed as `score` would compute it.
CREATE TABLE eval_live_minutes (
    tenant TEXT NOT NULL DEFAULT '',
    app TEXT NOT NULL,
    minute INTEGER NOT NULL,
    build TEXT NOT NULL,
    index_hash TEXT NOT NULL,
    question_type TEXT NOT NULL,
    samples INTEGER NOT NULL,
    sample_rate REAL NOT NULL,
    partials BLOB NOT NULL,
    PRIMARY KEY (tenant, app, minute, build, index_hash, question_type)
) STRICT;

-- A window that has ended; `number` is the place in the stream of events.
CREATE TABLE eval_live_windows (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL DEFAULT '',
    app TEXT NOT NULL,
    build TEXT NOT NULL,
    index_hash TEXT NOT NULL,
    question_type TEXT NOT NULL,
    begins_at TEXT NOT NULL,
    ends_at TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('closed', 'too-little-traffic')),
    samples INTEGER NOT NULL,
    sample_rate REAL NOT NULL,
    ragauge_version TEXT NOT NULL,
    aggregate_json TEXT NOT NULL,
    UNIQUE (tenant, app, begins_at, build, index_hash, question_type)
) STRICT;
