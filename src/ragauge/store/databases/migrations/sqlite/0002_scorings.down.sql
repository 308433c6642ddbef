DROP TABLE eval_metric_values;
DROP TABLE eval_scorings;
