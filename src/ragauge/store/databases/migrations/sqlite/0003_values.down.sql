DROP VIEW eval_query_values;
ALTER TABLE eval_query_results DROP COLUMN metric_values;
