ALTER TABLE live_traces ADD COLUMN window_number INTEGER;
CREATE INDEX live_traces_by_window ON live_traces (window_number);
ALTER TABLE live_gold_candidates DROP COLUMN user_key;
DROP TABLE live_metric_hours;
