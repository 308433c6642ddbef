-- Runs, their results, and what they were scored against.

CREATE TABLE eval_runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    suite TEXT NOT NULL,
    profile TEXT NOT NULL,
    created_at TEXT NOT NULL,
    commit_hash TEXT,
    config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL,
    gold_hash TEXT NOT NULL,
    gold_key TEXT NOT NULL,
    chunks TEXT,
    status TEXT NOT NULL CHECK (status IN ('incomplete', 'complete')),
    schema_version INTEGER NOT NULL,
    results INTEGER NOT NULL,
    evidence BLOB NOT NULL
) STRICT;

CREATE TABLE eval_gold_items (
    gold_key TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    query_id TEXT NOT NULL,
    turn INTEGER,
    item_hash TEXT NOT NULL,
    item_json BLOB NOT NULL,
    PRIMARY KEY (gold_key, ordinal)
) STRICT;

CREATE TABLE eval_chunks (
    digest TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (digest, ordinal)
) STRICT;

-- With rowids: WITHOUT ROWID was no faster for rows of 600 bytes, and it moves the payload of a
-- row of 2 KB and more to pages of its own.
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    query_id TEXT NOT NULL,
    paraphrase INTEGER,
    seed TEXT,
    turn INTEGER,
    hit_rank INTEGER,
    carries INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    delta_s REAL,
    latency_ms REAL,
    result_json BLOB NOT NULL,
    PRIMARY KEY (run_id, ordinal)
) STRICT;

CREATE TABLE eval_tags (
    tag TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE
) STRICT;

CREATE INDEX eval_tags_by_run ON eval_tags (run_id);
