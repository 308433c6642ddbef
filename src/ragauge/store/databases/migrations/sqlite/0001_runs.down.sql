DROP TABLE eval_tags;
DROP TABLE eval_query_results;
DROP TABLE eval_chunks;
DROP TABLE eval_gold_items;
DROP TABLE eval_runs;
