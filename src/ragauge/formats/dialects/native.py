"""ragauge's own names: any spelling is read, none is preferred."""

from ragauge.model.dialect import Dialect

DIALECT = Dialect(
    name="native",
    title="any spelling of a field that is known; disagreeing spellings are an error",
    source="own",
    profile="all",
    gold_marks=frozenset(),
    trace_marks=frozenset(),
    own_gold={},
    own_trace={},
    cites_in_text=True,
)
