-- Several scorings of one run beside each other, and the values of each question.

CREATE TABLE eval_scorings (
    run_id TEXT NOT NULL REFERENCES eval_runs (run_id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    ragauge_version TEXT NOT NULL,
    aggregate_json TEXT NOT NULL,
    questions BLOB NOT NULL,
    PRIMARY KEY (run_id, number)
) STRICT;

CREATE TABLE eval_metric_values (
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,
    metric TEXT NOT NULL,
    version INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (run_id, number, position),
    FOREIGN KEY (run_id, number) REFERENCES eval_scorings (run_id, number) ON DELETE CASCADE
) STRICT;
