-- Runs, their results, and what they were scored against.
-- Collation "C" sorts by code point, as Python and SQLite do. JSON, unlike JSONB, gives back the
-- text as it came. Payloads come compressed: storage EXTERNAL does not try it again.

CREATE TABLE eval_runs (
    run_id TEXT COLLATE "C" PRIMARY KEY,
    suite TEXT NOT NULL,
    profile TEXT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    commit_hash TEXT,
    config_snapshot_json JSON NOT NULL,
    aggregate_json JSON NOT NULL,
    gold_hash TEXT NOT NULL,
    gold_key TEXT NOT NULL,
    chunks TEXT,
    status TEXT NOT NULL CHECK (status IN ('incomplete', 'complete')),
    schema_version INTEGER NOT NULL,
    results BIGINT NOT NULL,
    evidence BYTEA NOT NULL
);

ALTER TABLE eval_runs ALTER COLUMN evidence SET STORAGE EXTERNAL;

CREATE TABLE eval_gold_items (
    gold_key TEXT COLLATE "C" NOT NULL,
    ordinal BIGINT NOT NULL,
    query_id TEXT NOT NULL,
    turn BIGINT,
    item_hash TEXT NOT NULL,
    item_json BYTEA NOT NULL,
    PRIMARY KEY (gold_key, ordinal)
);

ALTER TABLE eval_gold_items ALTER COLUMN item_json SET STORAGE EXTERNAL;

CREATE TABLE eval_chunks (
    digest TEXT COLLATE "C" NOT NULL,
    ordinal BIGINT NOT NULL,
    payload BYTEA NOT NULL,
    PRIMARY KEY (digest, ordinal)
);

ALTER TABLE eval_chunks ALTER COLUMN payload SET STORAGE EXTERNAL;

-- No foreign key: it would be looked up for each row. A writer locks the row of its run instead.
CREATE TABLE eval_query_results (
    run_id TEXT COLLATE "C" NOT NULL,
    ordinal BIGINT NOT NULL,
    query_id TEXT NOT NULL,
    paraphrase BIGINT,
    seed TEXT,
    turn BIGINT,
    hit_rank BIGINT,
    carries BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    delta_s DOUBLE PRECISION,
    latency_ms DOUBLE PRECISION,
    result_json BYTEA NOT NULL,
    PRIMARY KEY (run_id, ordinal)
);

ALTER TABLE eval_query_results ALTER COLUMN result_json SET STORAGE EXTERNAL;

CREATE TABLE eval_tags (
    tag TEXT COLLATE "C" PRIMARY KEY,
    run_id TEXT COLLATE "C" NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE
);

CREATE INDEX eval_tags_by_run ON eval_tags (run_id);
