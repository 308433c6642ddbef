ALTER TABLE live_gold_candidates DROP COLUMN user_key;
DROP TABLE live_metric_hours;
