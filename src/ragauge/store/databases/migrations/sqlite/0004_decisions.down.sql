DROP TABLE eval_live_windows;
DROP TABLE eval_live_minutes;
DROP TABLE eval_decisions;
ALTER TABLE eval_scorings DROP COLUMN slices;
ALTER TABLE eval_runs DROP COLUMN kept;
ALTER TABLE eval_runs DROP COLUMN dirty;
ALTER TABLE eval_runs DROP COLUMN author;
ALTER TABLE eval_runs DROP COLUMN branch;
