-- What was measured stands with each result, and can be asked for by the name of a metric.

ALTER TABLE eval_query_results ADD COLUMN metric_values TEXT;

CREATE VIEW eval_query_values AS
SELECT
    result.run_id, result.ordinal, result.query_id, result.paraphrase, result.seed, result.turn,
    metric.metric, metric.version, measured.value::DOUBLE PRECISION AS value
FROM eval_query_results AS result
CROSS JOIN LATERAL json_array_elements_text(result.metric_values::JSON)
    WITH ORDINALITY AS measured (value, place)
JOIN eval_metric_values AS metric
    ON metric.run_id = result.run_id AND metric.number = 1 AND metric.position = place - 1;
