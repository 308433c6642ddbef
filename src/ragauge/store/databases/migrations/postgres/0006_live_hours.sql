-- What 90 days of windows were like, hour by hour, so that nobody has to read them all: the last, the
-- least and the most of each metric of each series. `hour` counts from 1970 in UTC and has the windows
-- that ended in it; `ended` is the end of the last of them, in milliseconds.
CREATE TABLE live_metric_hours (
    tenant TEXT COLLATE "C" NOT NULL,
    app TEXT COLLATE "C" NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    build TEXT COLLATE "C" NOT NULL,
    index_hash TEXT COLLATE "C" NOT NULL,
    question_type TEXT COLLATE "C" NOT NULL,
    windows BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    last DOUBLE PRECISION NOT NULL,
    least DOUBLE PRECISION NOT NULL,
    most DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, app, metric, hour, build, index_hash, question_type)
);

-- A candidate may outlive its trace; it goes with its user all the same.
ALTER TABLE live_gold_candidates ADD COLUMN user_key TEXT COLLATE "C";

-- The window of a trace follows from its minute: nobody ever wrote it here.
DROP INDEX live_traces_by_window;
ALTER TABLE live_traces DROP COLUMN window_number;
