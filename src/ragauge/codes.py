"""Exit codes and error codes: what each means, and what to do."""

from __future__ import annotations

import re
from enum import IntEnum

from msgspec import Struct


class ExitCode(IntEnum):
    """The exit codes of every command; 0 is never returned for an empty run."""

    PASS = 0
    GATE_FAILED = 1
    USAGE = 2
    BAD_INPUT = 3
    NOT_EVALUABLE = 4
    NOTHING_MEASURED = 5
    BUG = 70


class Code(Struct, frozen=True):
    """One error code: what it means and what to do, as `ragauge explain` prints it."""

    name: str
    exit: ExitCode
    title: str
    explanation: str


def _codes(exit_code: ExitCode, text: str) -> dict[str, Code]:
    """Codes from a list: a line with the name and the title, and indented below it what to do."""
    codes = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        first, *lines = entry.split("\n")
        name, _, title = first.partition(": ")
        codes[name] = Code(name, exit_code, title, " ".join(map(str.strip, lines)))
    return codes


CODES: dict[str, Code] = {
    **_codes(
        ExitCode.USAGE,
        """
bad-model: the model of an embedder is not the one that is expected
    A file of weights or a vocabulary is missing, damaged, or another one. Its hash is checked,
    because ΔS of other weights cannot be compared. Install the package again, or in
    [embedders.NAME] of ragauge.toml say which file is meant, and its sha256.
embedder-failed: an embedder could not make its vectors
    The server did not answer, refused, or answered something else than vectors. What was made
    before is in the cache, so the same command goes on from there.
not-sent: a service did not take all results
    `traces annotate --send` counts what the service took and refused, and why. A service that is
    busy or stumbles is asked again for a while. What was taken is not sent twice by repeating the
    command: ids are made of the trace and the name of the result, and replace what is there.
bad-target: a target cannot be asked at all
    A target is python:module:function, http://..., command:PROGRAM, or what a plugin brings. The
    function, program or option that is named must be there; what goes wrong with single questions
    later is recorded with them.
host-not-allowed: ragauge.toml names a host that nobody has allowed
    A file in a project may come from anybody, and must not send your texts and keys anywhere. Allow
    a host with --allow-host HOST, for a whole job with RAGAUGE_ALLOW_HOSTS=HOST,HOST, or read the
    file and trust it with `ragauge trust`; it has to be trusted again when these settings change.
    Hosts that you name on the command line need no consent.
not-trusted: ragauge.toml or a stored run names code that nobody has trusted
    A target such as python:... or command:..., a model that is loaded as code, and plugins run what
    they are told to. Where ragauge.toml names one, read it and trust the file with `ragauge trust`.
    Where it comes from a stored run that you did not begin here, name it again on the command line.
cannot-resume: a stored run cannot be gone on with
    Only a run that `ragauge run` began has questions left to ask, and only with the gold set, the
    target, the seeds and the k that it began with: half a run of one system and half of another
    would be a run of neither.
run-held: another process is writing the run, or serves from the spool
    One process at a time asks for a run and stores its results. Wait until it ends, or end it; then
    `ragauge run --resume RUN` goes on with what is left. A process that is gone, however it ended,
    holds nothing.
no-such-window: no window of live traffic has that number
    Windows are numbered as they close, for all tenants of a store together. `ragauge live windows`
    lists the last ones of a tenant.
window-gone: the traces of a window are not all stored any more
    The bodies of traces are deleted after `retention.bodies` days, and on demand. The numbers of
    the window stay; from fewer traces other numbers would come.
usage: the command line does not fit the command
    An option is missing, unknown, or has a value that cannot be read. `ragauge COMMAND --help`
    lists what the command takes.
file-not-found: a named file is not there
    The path was taken as written, relative to the current folder. Check the spelling and the folder
    that the command runs in.
file-unreadable: a named file is there but cannot be read or written
    It is a folder, the permissions forbid it, or the disk refused. Nothing half-written is left
    behind: output goes to a temporary file first.
bad-config: ragauge.toml or a gates file cannot be used
    The file is not TOML, or a key is unknown or has the wrong type. Unknown keys are refused,
    because a misspelt gate would otherwise never fail.
bad-gate: a gate cannot be read
    A gate is NAME=NUMBER (the metric knows its direction), or METRIC>=NUMBER or METRIC<=NUMBER. The
    number must be finite. The direction must fit the metric: a floor under something that should be
    low would pass exactly when it must not.
unknown-metric: no metric of that name is registered
    `ragauge metrics` lists the ids. A metric with a cut-off is written with it, as in
    retrieval.recall_all@5; a profile also knows short names such as chr.
bad-field-path: a path to a field cannot be read
    Write `answer`, `metadata.qid` or `sources[].id`; `[0]` is the first entry of a list, and a name
    with a dot or a bracket in it stands in double quotes. Anything else is read as JMESPath, which
    needs `pip install "ragauge[http]"`.
field-not-found: a path of [fields] or --field leads to nothing in any row
    The left side is our field, the right side is where your rows have it. A path that no row of the
    file has is mostly a slip; the hint names fields that are there. An empty path, `qid=`, says
    that your rows do not have the field.
unknown-name: a profile, dialect, format or code of that name does not exist
    The message lists the names that do.
other-dialect: an edit would change the dialect that a gold set is recognised as
    Without --dialect a gold set is recognised by the names of its fields, and its dialect decides
    about profile and gates. Say --dialect for the edit and wherever the file is used, or leave the
    field out. Nothing was written.
bad-plugin: an installed plugin cannot be loaded
    Packages can bring metrics, dialects and reports by entry points. One that fails to import is
    refused, because its metrics and gates would be missing without a word. So is a dialect that
    calls a name its own which nothing reads.
file-exists: a file that would be written is already there
    `ragauge init` and `ragauge demo --write` never replace your files unless told to with --force;
    `ragauge corpus build` replaces nothing but a corpus, and `ragauge gold freeze` no lock that
    holds another set.
missing-extra: a file or a store needs a package that is not installed
    Parquet, YAML and zstd are read by packages of their own, which come with an extra:
    ragauge[parquet], ragauge[yaml] or ragauge[zstd]; PostgreSQL needs ragauge[postgres], HTML,
    reStructuredText and PDF ragauge[corpus], JMESPath ragauge[http], spans as protobuf
    ragauge[otlp], `ragauge serve` ragauge[serve]. A target that needs a library has an extra of its
    own name: ragauge[chroma], ragauge[qdrant].
no-token: a token is needed, or there is none of that id
    `ragauge serve` listens on this machine only, unless somebody has a token: `ragauge token create
    --scope ingest` makes one, `ragauge token list` shows them without their secrets.
bad-store-url: a store URL cannot be used
    A store is sqlite:///FILE (a path relative to the current folder, with a fourth slash an
    absolute one) or postgresql://USER@HOST/DATABASE.
store-unavailable: the store cannot be opened or written
    The disk is full, the file may not be written, another process holds the lock for too long, or
    the server does not answer. A run that was being stored stays marked as incomplete; all other
    runs are as they were.
run-exists: a run of that id is already in the store
    A stored run never changes its results. Choose another --run-id, or delete the old run with
    `ragauge runs delete`.
unknown-run: no stored run has that id or tag
    A run is named by its id, the beginning of its id, a tag, or `latest`. `ragauge runs list` shows
    what there is.
""",
    ),
    **_codes(
        ExitCode.BAD_INPUT,
        """
not-rows: a file holds something else than rows of JSON
    It is a table with a header, or binary. Gold and traces are JSON Lines, a JSON array, or one of
    the other kinds of file that `ragauge score --help` names; the kind is told by the first bytes.
bad-json: a line is not valid JSON
    JSON Lines needs one complete object on every line. NaN, Infinity, single quotes, trailing
    commas and unescaped control characters are not JSON.
truncated-line: the last line ends in the middle of an object
    The file has no final newline and its last line is not complete: the program that wrote it was
    probably stopped. Write the line again, or remove it, so that the question counts as missing and
    not as something else.
bad-encoding: the bytes are not UTF-8
    Files are read as UTF-8, with or without a byte order mark. Convert the file; do not drop the
    bytes, because that moves every offset behind them.
nul-byte: the line contains a NUL byte
    Usually the tail of a file that was being written when the machine went down.
line-too-long: one line is longer than 64 MiB
    A trace of that size is a whole index dump or a missing newline.
too-deep: objects are nested too deeply
    No field that is read needs more than a few levels.
not-a-row: a row is not a JSON object
    Every line, or every element of a JSON array, must be one object.
bad-field: a field has the wrong type or an impossible value
    The message names the path inside the object, what was expected and what was found.
missing-field: a field that is needed is absent
    A gold item needs an id, unless no item of the file has one: then each is named after its
    question. Where traces are joined by the question, as under smoke, it needs a question too.
field-conflict: two spellings of one field disagree
    A row may spell a field in two ways (retrieved_ids and topk) when both say the same. When they
    differ, only a profile that names one of them as its own can decide: choose it with --profile or
    --dialect, or drop one of the fields.
duplicate-qid: two gold items have the same id
    Under the profiles ship and smoke the last one wins, as in their sources, and the report counts
    it. Everywhere else it is an error, because nobody can tell which answer was meant.
duplicate-key: an object of a gold item has a key twice
    Decoders of JSON and YAML take the last of the two and drop the other, so evidence would be lost
    without a word. Under the profiles ship and smoke it is a warning, since their sources take the
    last. In traces the last wins too: `ragauge validate` counts them.
mixed-units: offsets of different units meet
    Bytes and characters agree only in plain ASCII; comparing one with the other would move every
    place behind the first accent. Use bytes of the UTF-8 text everywhere, or say unit: char
    everywhere.
quote-unpinned: evidence is a quote of a document whose text is not known
    A quote is found in the document's text, which a run does not have. Name the corpus with
    --corpus, or let `ragauge gold pin` look the quote up in it and write its offsets beside it. A
    quote without a document is found by the texts of the hits.
draft-item: a gold item is a draft that nobody has confirmed
    `ragauge gold new` suggests evidence and leaves the question to a person; `ragauge gold migrate`
    leaves items whose evidence has no new place. Write the question, check the evidence, and
    remove `draft` from the item.
unresolved: an id, a document or a place is not in the corpus
    Evidence, hits and citations are looked up in the corpus that was named. The corpus may be newer
    than they are: `ragauge corpus diff` and `gold migrate` follow an edit.
quote-not-found: a quote does not stand in its document
    White space and composed characters may differ, words may not. The document was edited, or the
    quote was typed and not copied.
quote-ambiguous: a quote stands in its document more than once
    Say which is meant with `occurrence`, counted from 1, or quote more of the text.
quote-moved: a quote does not stand at its offsets
    The text at the offsets is another. The hint says where the quote stands now; `ragauge gold pin
    --repin` follows it, `gold migrate` follows a whole edit.
bad-document: a document cannot be parsed, or its name cannot be part of an id
    It is damaged, encrypted, or not of the kind that its suffix says. `--on-bad-file skip` builds
    the corpus without it and counts it.
parser-failed: a parser failed on a document
    It met something that it does not expect, ran out of memory, or ended its process. The file may
    be damaged, but that is still a fault of the parser: please report it. `--on-bad-file skip`
    builds the corpus without the file; RAGAUGE_DEBUG=1 shows where the parser failed.
bad-corpus: a corpus folder is damaged, or was edited by hand
    Its lists and texts must be those that its manifest speaks of. Build it again with `ragauge
    corpus build`.
bad-gzip: a compressed file is damaged
    It could not be unpacked to its end.
bad-zstd: a file packed with zstd is damaged
    It could not be unpacked to its end.
unpacks-too-large: a packed file unpacks to far more than its size
    It would take more than 2 GiB on the disk and more than 500 times its own size, which traces
    hardly do: rows that differ in their id alone pack about 130 : 1. If it is meant, unpack it
    yourself, or raise RAGAUGE_UNPACK_LIMIT (such as 8GiB) or RAGAUGE_UNPACK_RATIO (such as 2000).
bad-csv: a CSV or TSV file cannot be read
    The first line names the columns; every row has as many cells, and a cell with the separator, a
    quote or a line end in it stands in double quotes. The separator is a tab in a .tsv, else what
    the header has most of: comma, semicolon or tab.
bad-parquet: a Parquet file is damaged, or a value in it has no JSON form
    Rows are read as JSON objects, and the line that is named is the number of the row. NaN,
    infinity and bytes that are not UTF-8 have no place there.
bad-yaml: a YAML file cannot be read
    It must be one document: a list of mappings, or a mapping with one such list under queries,
    items or questions. NaN, infinity, unknown tags and aliases that stand for very much are
    refused.
bad-spans: a file of spans is damaged
    It is OTLP as protobuf or JSON, and was not written to its end, or something else was written
    into it. Export it again, or take the part away that is not complete.
bad-store: a store is damaged, or is something else
    The file is not a SQLite database, or its tables are not those of ragauge. One unreadable result
    is not this error: it is counted, listed and gated.
newer-store: a store was written by a newer ragauge
    Its tables have a form that this version does not know, and guessing would damage it. Upgrade
    ragauge, or use another store.
decision-differs: a stored decision cannot be repeated
    `ragauge decide repeat` computes a decision again from the evidence that is stored with it, and
    must get the same bytes. Either the row was changed, or another version of the rules made it:
    the record names the ragauge that did.
bad-export: a file is not an exported run
    `ragauge runs import` reads what `ragauge runs export` wrote. Nothing was imported.
unmapped: something has no place in the new corpus
    A migration map has no new place for an id, a section, a document or some bytes, or one of less
    confidence than was asked for. Look at its row in the map, correct it by hand if you know
    better, lower --min-confidence, or say --on-unmapped keep or drop.
text-changed: an id in gold stands for other text than when the set was frozen
    The lock has a fingerprint of the text that each id stood for. The document was edited since,
    or a section was inserted before: follow it with `ragauge corpus diff` and `gold migrate`. If
    the new text is meant, `ragauge gold verify --corpus DIR --update` notes it.
already-migrated: a gold item was moved to another version of its corpus before
    `ragauge gold migrate` stamps what it moves with the revision it leads to (`migrated_to`), for
    ids of two versions look alike. The item has another stamp than the map leads from, or none
    beside items that have been moved already. Use the map that leads on from there.
bad-lock: the lock of a gold set cannot be used
    It was damaged, edited by hand, left with a merge conflict, or written by a newer ragauge.
    Nothing was compared: take it from version control again, or upgrade.
bad-scores: a file is not a scores file that can be judged again
    `ragauge gate` reads what `ragauge score --full -o FILE.json` wrote: the metrics with their n.
    The short JSON of the ship profile does not carry n.
""",
    ),
    **_codes(
        ExitCode.NOT_EVALUABLE,
        """
lexical-embedder: the ΔS of this run is lexical, and feeds no gate
    It comes from hashed n-grams: it compares words, not meanings, and no threshold of ΔS was made
    for it. Measure with a model (`--embed minilm`), or leave out the gates on ΔS.
unjudged-delta-s: the ΔS of this run decides nothing, and it has to
    Calibration showed that this embedder does not tell evidence from hard negatives. Leave out
    --require-delta-s, and the gates on ΔS leave the verdict; or measure with another embedder.
    Where all gates are on ΔS, none is left to decide.
nothing-placed: no hit has a place that the evidence can be held against
    The gold set says where evidence stands, and the hits say neither that nor anything by which it
    can be found, so every rank would be a miss. With --corpus or --chunks hits are placed by id, by
    document and offsets, or by their text; the message counts what stood in the way.
too-many-errors: the target failed too often, and the run was stopped
    There were more errors than --max-errors allows, the first 20 results all had the same error, or
    very many calls never came back. What was answered is stored: fix the target, then go on with
    --resume and --retry-errors. --keep-going asks all questions, whatever the first errors are.
missing-traces: gold items have no trace
    A question that was not asked cannot pass, and one that a baseline was not asked hides a drop.
    Run the missing questions, or say --allow-missing when the trace file is meant to be partial; a
    drop is then judged on what the baseline has.
errored-traces: traces carry an error instead of a result
    Errored rows count 0 in retrieval metrics and are left out of answer metrics by name; the gate
    does not pass over them unless --allow-errored is given. Errors of a baseline hide a drop: they
    block gates on one, and --allow-errored leaves their questions out.
skipped-lines: bad lines were skipped
    --on-bad-line=skip was asked for and lines were skipped. They are counted and listed;
    --allow-skipped lets the gates decide without them.
nothing-answered: nothing was answered and nothing was answerable
    Every ratio would be 0/0, and the source's defaults would pass. --allow-empty accepts that.
ids-never-match: no id that was retrieved or cited is an id of the gold set
    Every number would be a zero that says nothing of the system: gold and traces name chunks or
    documents in two ways, or come from two indexes. Say where the chunks lie (--chunks FILE or
    --corpus DIR), log the ids that gold names, or pin the gold set to places with `gold pin`.
no-places: gold names places in documents, and the hits have none
    A hit is found at a place by its own offsets, or by a list that says where chunks lie. Log `doc`
    and `offsets` with the hits, or give --chunks FILE or --corpus DIR.
foreign-traces: traces are about other questions than the gold items that they belong to
    Their question is that of another item, or has no word in common with that of their own: ids
    were given anew, or the files are of two gold sets. Compare the questions at the lines that are
    named; --allow-other-questions scores them all the same.
undefined-metric: a gated metric is 0/0
    No record is in its population; the reason is in the gate's row. A gate on nothing does not
    pass.
too-few: a gate has fewer questions than its min_n
    The gate asks for a minimum number of questions (`min_n`, 5 where it does not say), and the run
    has fewer; or the run has one question only, which shows nothing.
fewer-questions: a gate on a drop can compare less than 90 % of the baseline's questions
    Questions of the baseline are gone, or their gold items say something else now. A drop over the
    few that are left could hide any loss: restore them, take a new baseline, or judge the rest with
    --allow-fewer-questions. A run that was begun with --limit or --filter is judged on its own.
no-baseline: a gate on a drop has nothing to compare with
    Score the live system with --save-run live.jsonl.gz, and give that file as --baseline; or keep
    runs in a folder with `ragauge runs keep`, and give latest:DIR, pinned:DIR or best-of:10:DIR.
incomparable: a gate on a drop cannot compare the two runs
    The baseline lacks the metric or the values of its questions, has another version of it, was
    scored with other options, or shares no question with this run.
place-unknown: gold names chunks, and the answer depends on where in them the evidence stands
    The two runs have other chunks. At some places of the evidence the gate passes and at others it
    fails, or a question loses something and does not. `ragauge gold pin --narrow` writes down
    where the evidence stands; `--open COMPARISON.json` asks for the open questions only.
incomplete-run: a stored run is not complete
    It was stopped, or is being stored right now. Half a run is never compared or judged: go on with
    `ragauge run --resume`, or store it anew and delete this one.
chunker-mismatch: the two runs were not chunked alike
    --strict-chunker-version was given, and some expected item cannot be recognised by its chunk id
    in both runs. Without it, such items are compared by span, quote or document, and the report
    counts them.
nothing-in-common: two runs have no question in common
    No gold item is in both runs unchanged, so there is nothing to compare.
mixed-embedders: the ΔS of this run come from different embedders
    A distance means nothing without the embedder that measured it. The traces name more than one in
    embed_model: score them apart.
""",
    ),
    **_codes(
        ExitCode.NOTHING_MEASURED,
        """
nothing-measured: there is no gold item or no trace that belongs to one
    The gold file or the trace file is empty, or no id is in both: a changed prefix is the usual
    cause. Or gold and traces meet, and no field of them is read that a chosen metric could measure:
    fields that are misspelt, or an export of another tool. `ragauge validate --fields` lists what
    is not read, and `ragauge init GOLD TRACES` proposes which field is which. For a corpus: no
    file that can be read was found.
""",
    ),
    **_codes(
        ExitCode.BUG,
        """
bug: ragauge itself is wrong
    Not your input. Please report it with the lines that were printed.
""",
    ),
}
