-- What was measured stands with each result, and can be asked for by the name of a metric.

ALTER TABLE eval_query_results ADD COLUMN metric_values TEXT;

CREATE VIEW eval_query_values AS
SELECT
    result.run_id, result.ordinal, result.query_id, result.paraphrase, result.seed, result.turn,
    metric.metric, metric.version, measured.value
FROM eval_query_results AS result
JOIN json_each(result.metric_values) AS measured
JOIN eval_metric_values AS metric
    ON metric.run_id = result.run_id AND metric.number = 1 AND metric.position = measured.key;
