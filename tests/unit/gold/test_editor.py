"""`gold edit` without a browser: who is let in, what is shown, and what is saved or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.resources import files
from threading import Thread
from typing import Any, NamedTuple

import pytest
import yaml

from ragauge.errors import RagaugeError
from ragauge.gold.editor.form import (
    ChangedOnDiskError,
    GoldEditor,
    ItemEdit,
    NewEvidence,
    SaveRequest,
)
from ragauge.gold.editor.server import ADDRESS, FormServer
from tests.support.cases import cases
from tests.support.command import Folder, Row
from tests.support.umlaut_corpus import BLOCK, CODE, HOST, PORT, make_corpus

GOLD: list[Row] = [
    {"qid": "A", "zzz": 1.50, "q": "Wie groß?", "gold_ids": [BLOCK], "gold_claim": "x"},
    {"qid": "B", "q": "", "gold_ids": [{"doc": "guide.md", "quote": "nowhere"}], "draft": True},
]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Asks as a browser does, with a cookie if it has one."""

    def __init__(self, server: FormServer) -> None:
        self.port = server.server_port
        self.server = server
        self.cookie: str | None = None

    def ask(self, path: str, body: Any = None, **headers: str | None) -> Answer:
        sent = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie}
        if body is not None:
            sent["Origin"] = f"http://127.0.0.1:{self.port}"
        sent |= headers
        connection = HTTPConnection(ADDRESS, self.port, timeout=10)
        try:
            connection.putrequest("POST" if body is not None else "GET", path, skip_host=True)
            data = json.dumps(body).encode() if body is not None else None
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def enter(self) -> None:
        answer = self.ask(f"/?token={self.server.token}")
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        assert "HttpOnly; SameSite=Strict" in answer.headers["Set-Cookie"]
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]


@contextmanager
def browsing(folder: Folder, gold: Any = GOLD, name: str = "gold.jsonl") -> Iterator[Browser]:
    lookup = make_corpus(folder)
    folder.write(name, gold)
    with FormServer(GoldEditor(name, lookup)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Browser(server)
        finally:
            server.shutdown()
            thread.join()


def edit_of(item: Any, **changes: Any) -> Row:
    """What the form sends for an item that is shown so."""
    names = ("index", "question", "paraphrases", "expect", "negatives", "anchor_section", "draft")
    evidence = [entry["ref"] for entry in item["evidence"]]
    return {**{name: item[name] for name in names}, "evidence": evidence, **changes}


def rows(folder: Folder, name: str = "gold.jsonl") -> list[Row]:
    return [json.loads(line) for line in (folder.path / name).read_text("utf-8").splitlines()]


def test_it_listens_on_this_machine_only(folder: Folder) -> None:
    with browsing(folder) as browser:
        assert browser.server.server_address[0] == "127.0.0.1"
        assert browser.server.url.startswith(f"http://127.0.0.1:{browser.port}/?token=")


def test_the_link_works_once_and_nothing_works_without_it(folder: Folder) -> None:
    with browsing(folder) as browser:
        link = f"/?token={browser.server.token}"
        paths = ["/", "/items", "/form.js", "/document?doc=guide.md", "/?token=", "/?token=guess"]
        assert {browser.ask(path).status for path in paths} == {403}
        assert browser.ask("/save", {"revision": "", "edits": []}).status == 403
        browser.enter()
        assert {browser.ask(path).status for path in paths[:4]} == {200}
        browser.cookie = None
        assert browser.ask(link).status == 403
        browser.cookie = f"ragauge-{browser.port}=guess"
        assert browser.ask("/items").status == 403


@cases("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", None])
def test_other_host_names_are_refused(folder: Folder, host: str | None) -> None:
    """A page elsewhere can have its name lead here, and would then be asked for by that name."""
    with browsing(folder) as browser:
        browser.enter()
        assert browser.ask("/items", Host=host).status == 403
        assert browser.ask("/items", Host=f"localhost:{browser.port}").status == 200


@cases("origin", ["http://evil.example", "null", "http://127.0.0.1:1", None])
def test_other_pages_cannot_save(folder: Folder, origin: str | None) -> None:
    with browsing(folder) as browser:
        browser.enter()
        view = browser.ask("/items").said
        body = {"revision": view["revision"], "edits": [edit_of(view["items"][0], question="!")]}
        assert browser.ask("/save", body, Origin=origin).status == 403
        assert rows(folder) == GOLD


def test_pages_load_nothing_from_elsewhere(folder: Folder) -> None:
    with browsing(folder) as browser:
        browser.enter()
        for path in ("/", "/form.js", "/form.css", "/items", "/nowhere"):
            headers = browser.ask(path).headers
            assert headers["Content-Security-Policy"].startswith("default-src 'self';")
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
    for name in ("page.html", "form.js", "form.css"):
        text = files("ragauge.gold.editor").joinpath(name).read_text("utf-8")
        assert not re.search(r"https?:|url\(|@import|src=\"(?!/form)|style=|innerHTML|eval\(", text)


def test_every_field_has_a_label() -> None:
    text = files("ragauge.gold.editor").joinpath("page.html").read_text("utf-8")
    fields = re.findall(r"<(?:input|select|textarea) id=\"(\w+)\"", text)
    assert len(fields) == 9
    assert set(fields) == set(re.findall(r"<label for=\"(\w+)\"", text))


def test_items_and_documents_are_shown(folder: Folder) -> None:
    with browsing(folder) as browser:
        browser.enter()
        view = browser.ask("/items").said
        assert (view["name"], view["documents"]) == ("gold.jsonl", ["guide.md", "notes.txt"])
        first, second = view["items"]
        assert (first["qid"], first["line"], first["question"]) == ("A", 1, "Wie groß?")
        assert first["evidence"] == [
            {"ref": 0, "label": BLOCK, "problem": None,
             "spots": [{"doc": "guide.md", "start": 11, "end": 35}]}
        ]  # fmt: skip
        assert second["draft"] is True
        assert "does not stand" in second["evidence"][0]["problem"]
        document = browser.ask("/document?doc=guide.md").said
        assert document["text"].encode()[11:35].decode() == "Die Größe 🙂 zählt."
        assert document["blocks"][0] == [BLOCK, 11, 35]
        assert document["sections"][1] == ["S.1.1", "Port", 37]
        assert browser.ask("/document?doc=../gold.jsonl").status == 404


def test_what_is_saved_keeps_the_names_and_the_other_fields(folder: Folder) -> None:
    with browsing(folder) as browser:
        browser.enter()
        view = browser.ask("/items").said
        new = {"doc": "guide.md", "start": 23, "end": 27, "quote": "🙂"}
        edit = edit_of(
            view["items"][0], question="Wie?", expect="answer", evidence=[0, new],
            negatives=[CODE], anchor_section="guide.md#S.1", paraphrases=["Wie groß ist es?"],
        )  # fmt: skip
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
        row, other = rows(folder)
        assert other == GOLD[1]
        assert list(row) == [
            "qid", "zzz", "q", "gold_ids", "gold_claim", "paraphrases", "answerable",
            "anchor_section", "negatives",
        ]  # fmt: skip
        assert (row["q"], row["answerable"], row["negatives"]) == ("Wie?", True, [CODE])
        assert row["gold_ids"][0] == BLOCK
        assert row["gold_ids"][1].items() >= {**new, "section": "S.1"}.items()
        # The answer is what the file says now, and can be saved again.
        again = answer.said
        assert again["items"][0]["evidence"][1]["spots"] == [
            {"doc": "guide.md", "start": 23, "end": 27}
        ]
        edit = edit_of(again["items"][0], evidence=[1], expect="", anchor_section="")
        saved = browser.ask("/save", {"revision": again["revision"], "edits": [edit]})
        assert saved.status == 200
        assert rows(folder)[0].keys() & {"answerable", "anchor_section"} == set()
        assert rows(folder)[0]["gold_ids"] == [row["gold_ids"][1]]


def test_saving_nothing_new_leaves_the_bytes(folder: Folder) -> None:
    with browsing(folder) as browser:
        browser.enter()
        before = (folder.path / "gold.jsonl").read_bytes()
        view = browser.ask("/items").said
        edits = [edit_of(item) for item in view["items"]]
        assert browser.ask("/save", {"revision": view["revision"], "edits": edits}).status == 200
        assert (folder.path / "gold.jsonl").read_bytes() == before


def test_a_file_that_changed_on_disk_is_not_written_over(folder: Folder) -> None:
    with browsing(folder) as browser:
        browser.enter()
        view = browser.ask("/items").said
        body = {"revision": view["revision"], "edits": [edit_of(view["items"][0], question="!")]}
        folder.write("gold.jsonl", [GOLD[1], GOLD[0]])
        answer = browser.ask("/save", body)
        assert answer.status == 409
        assert "changed on disk" in answer.said["message"]
        assert rows(folder) == [GOLD[1], GOLD[0]]
        # Another page has loaded the new file since; the first one is still of the old.
        assert browser.ask("/items").said["items"][0]["qid"] == "B"
        assert browser.ask("/save", body).status == 409
        (folder.path / "gold.jsonl").unlink()
        assert browser.ask("/items").status == 404
        assert browser.ask("/save", body).status == 409


@cases(
    ("changes", "said"),
    [
        ({"evidence": [{"doc": "guide.md", "start": 22, "end": 26, "quote": "🙂"}]}, "character"),
        ({"evidence": [{"doc": "guide.md", "start": 11, "end": 15, "quote": "🙂"}]}, "selected"),
        ({"evidence": [{"doc": "no.md", "start": 0, "end": 1, "quote": "x"}]}, "no.md"),
        ({"evidence": ["x"]}, "cannot be read"),
        ({"question": 7}, "cannot be read"),
        ({"more": 7}, "cannot be read"),
        ({"expect": "maybe"}, "cannot be read"),
        ({"expect": "Answer"}, "cannot be read"),
        ({"expect": True}, "cannot be read"),
        ({"expect": None}, "cannot be read"),
        ({"draft": "yes"}, "cannot be read"),
        ({"negatives": ["guide.md#S.7.p.Bk001"]}, "no block `guide.md#S.7.p.Bk001`"),
        ({"negatives": ["notes"]}, "no block `notes`"),
        ({"anchor_section": "guide.md#S.7"}, "no section `S.7`"),
        ({"anchor_section": "anywhere"}, "anywhere"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_saved(
    folder: Folder, changes: Row, said: str
) -> None:
    with browsing(folder) as browser:
        browser.enter()
        view = browser.ask("/items").said
        edits = [edit_of(view["items"][0], **changes), edit_of(view["items"][1], question="!")]
        answer = browser.ask("/save", {"revision": view["revision"], "edits": edits})
        assert answer.status == 400
        assert said in answer.said["message"]
        assert rows(folder) == GOLD


def test_a_draft_is_confirmed_with_a_question_and_not_without(folder: Folder) -> None:
    with browsing(folder) as browser:
        browser.enter()
        view = browser.ask("/items").said
        for question, status in (("", 400), ("Was zählt?", 200)):
            edit = edit_of(view["items"][1], draft=False, evidence=[], question=question)
            body = {"revision": view["revision"], "edits": [edit]}
            assert browser.ask("/save", body).status == status
        assert rows(folder)[1] == {"qid": "B", "q": "Was zählt?", "gold_ids": []}


def test_yaml_keeps_its_comments(folder: Folder) -> None:
    text = (
        f"# mine\n- id: A\n  query: x  # why\n  expected_chunk_ids: [{PORT}]\n\n# last\n- id: B\n"
    )
    with browsing(folder, text, "gold.yaml") as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][1], question="why", negatives=[HOST])
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
    new = (folder.path / "gold.yaml").read_text("utf-8")
    assert new == f"{text.rstrip()}\n  query: why\n  negatives: [{HOST}]\n"


COMMENTED = f"""\
# Questions of the first hour.
owner: me
queries:
  # about ports
  - id: A  # never reuse
    reviewed: 2026-11-15  # nothing reads it
    # as they asked it
    query: "Which port?"
    answerable: true  # for now
    expected_chunk_ids:
      - {PORT}  # the paragraph
    weight: 1.50
    # the end of A

  - id: B
    query: |
      Which host
      is it?
    expected_chunk_ids: [{HOST}]
"""


@cases(
    ("changes", "old", "new"),
    [
        ({"question": "Why?"}, '"Which port?"', '"Why?"'),
        ({"expect": "refuse"}, "answerable: true", "answerable: false"),
        ({"expect": ""}, "    answerable: true  # for now\n", ""),
        (
            {"negatives": [HOST]},
            "    weight: 1.50\n",
            f"    weight: 1.50\n    negatives: [{HOST}]\n",
        ),
        ({"evidence": []}, f"\n      - {PORT}  # the paragraph", " []  # the paragraph"),
        ({"draft": True}, "    weight: 1.50\n", "    weight: 1.50\n    draft: true\n"),
    ],
    ids=["question", "expect", "no expect", "negatives", "evidence", "draft"],
)
def test_one_field_of_yaml_changes_and_nothing_else(
    folder: Folder, changes: Row, old: str, new: str
) -> None:
    """Comments inside the item, its order, its digits and what nothing reads stay as they are."""
    with browsing(folder, COMMENTED, "gold.yaml") as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][0], **changes)
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
    assert COMMENTED.count(old) == 1
    assert (folder.path / "gold.yaml").read_text("utf-8") == COMMENTED.replace(old, new)


def test_a_text_of_several_lines_changes_in_its_place(folder: Folder) -> None:
    with browsing(folder, COMMENTED, "gold.yaml") as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][1], question="Which\none?\n")
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
    text = (folder.path / "gold.yaml").read_text("utf-8")
    assert text == COMMENTED.replace("Which host\n      is it?", "Which\n      one?")


def test_a_comment_on_the_last_line_stays_there(folder: Folder) -> None:
    text = f"- id: A\n  query: x\n  expected_chunk_ids: [{PORT}]  # why\n# last\n"
    with browsing(folder, text, "gold.yaml") as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][0], negatives=[HOST])
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
    new = (folder.path / "gold.yaml").read_text("utf-8")
    assert new == text.replace("# why\n", f"# why\n  negatives: [{HOST}]\n")


@cases(
    "text",
    [
        f"- ? id\n  : A\n  ? query\n  : x\n  ? expected_chunk_ids\n  : [{PORT}]\n",
        f"- id: A\n  query: &x x\n  expected_chunk_ids: [{PORT}]\n- id: B\n  query: *x\n",
        f"- id: A\n  <<: {{query: x}}\n  expected_chunk_ids: [{PORT}]\n",
        f"- id: A\n  query: x\n  expected_chunk_ids: [{PORT}]\n  note: >-\n    a\n\n    b\n",
        f"[{{id: A, query: x, expected_chunk_ids: [{PORT!r}]}}, {{id: B}}]\n",
    ],
    ids=["question marks", "alias", "merged", "folded", "one line"],
)
def test_rare_ways_to_write_yaml_say_what_was_meant(folder: Folder, text: str) -> None:
    before = yaml.safe_load(text)
    with browsing(folder, text, "gold.yaml") as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][0], question="why", negatives=[HOST])
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
    after = yaml.safe_load((folder.path / "gold.yaml").read_text("utf-8"))
    assert after == [{**before[0], "query": "why", "negatives": [HOST]}, *before[1:]]


def test_json_over_several_lines_keeps_the_fields_that_were_not_edited(folder: Folder) -> None:
    """Digits, numbers that no float holds, and the layout of lists."""
    text = (
        "[\n  {\n"
        '    "qid": "A",\n    "w": 1.50,\n    "big": 1e400,\n'
        f'    "gold_ids": [\n      "{PORT}"\n    ],\n'
        '    "gold_claim": "x",\n    "q": "?"\n'
        "  }\n]\n"
    )
    with browsing(folder, text, "gold.json") as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][0], question="Which?", negatives=[HOST])
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
    new = (folder.path / "gold.json").read_text("utf-8")
    listed = f'"q": "Which?",\n    "negatives": [\n      "{HOST}"\n    ]\n'
    assert new == text.replace('"q": "?"\n', listed)


def test_a_field_keeps_its_place_in_the_row(folder: Folder) -> None:
    row = {
        "qid": "A",
        "answerable": True,
        "anchor_section": "guide.md#S.1",
        "zzz": [1.50],
        "q": "?",
    }
    with browsing(folder, [{**row, "gold_ids": [BLOCK], "gold_claim": "x"}]) as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][0], expect="refuse", anchor_section="guide.md#S.1.1")
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
    (written,) = rows(folder)
    assert list(written.items()) == [
        ("qid", "A"), ("answerable", False), ("anchor_section", "guide.md#S.1.1"), ("zzz", [1.5]),
        ("q", "?"), ("gold_ids", [BLOCK]), ("gold_claim", "x"),
    ]  # fmt: skip


def test_an_edit_never_changes_the_dialect(folder: Folder) -> None:
    """With paraphrases alone, gold without a dialect would be judged by the gates of canary."""
    gold = [{"qid": "A", "question": "?", "answerable": True, "relevant": [BLOCK]}]
    with browsing(folder, gold) as browser:
        browser.enter()
        view = browser.ask("/items").said
        edit = edit_of(view["items"][0], paraphrases=["Which?"])
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 400
        assert (
            "with `paraphrases` `gold.jsonl` would be recognised as dialect canary"
            in (answer.said["message"])
        )
        assert rows(folder) == gold
        browser.server.editor.dialect = "native"
        browser.server.editor.gold = browser.server.editor._read()
        answer = browser.ask("/save", {"revision": view["revision"], "edits": [edit]})
        assert answer.status == 200, answer.body
        assert rows(folder) == [{**gold[0], "paraphrases": ["Which?"]}]


def test_an_item_that_cannot_be_read_is_shown_and_not_edited(folder: Folder) -> None:
    with browsing(folder, [{"qid": "A", "q": 7, "gold_ids": []}, GOLD[0]]) as browser:
        browser.enter()
        view = browser.ask("/items").said
        assert "`q` must be a string" in view["items"][0]["blocked"]
        assert view["items"][1]["blocked"] is None
        edits = [edit_of(view["items"][0], question="x")]
        assert browser.ask("/save", {"revision": view["revision"], "edits": edits}).status == 400


def test_two_spellings_that_agree_stay_so(folder: Folder) -> None:
    lookup = make_corpus(folder)
    folder.write("gold.jsonl", [{"qid": "A", "relevant": [BLOCK, PORT], "gold_ids": [BLOCK, PORT]}])
    desk = GoldEditor("gold.jsonl", lookup)
    view = desk.file()
    edit = ItemEdit(
        index=0, question="", paraphrases=[], expect="", evidence=[1], negatives=[],
        anchor_section="", draft=False,
    )  # fmt: skip
    desk.save(SaveRequest(revision=view.revision, edits=[edit]))
    assert rows(folder) == [{"qid": "A", "relevant": [PORT], "gold_ids": [PORT]}]


def test_an_item_in_characters_takes_no_bytes(folder: Folder) -> None:
    """`unit: char` speaks for the whole item, so a place in bytes would be read as characters."""
    lookup = make_corpus(folder)
    place = {"doc": "guide.md", "start": 19, "end": 20}
    folder.write("gold.jsonl", [{"qid": "A", "unit": "char", "relevant": [place]}])
    desk = GoldEditor("gold.jsonl", lookup)
    view = desk.file()
    assert view.items[0].evidence[0].spots[0].start == 23
    edit = ItemEdit(
        index=0, question="", paraphrases=[], expect="",
        evidence=[0, NewEvidence("guide.md", 11, 14, "Die")], negatives=[], anchor_section="",
        draft=False,
    )  # fmt: skip
    with pytest.raises(RagaugeError) as raised:
        desk.save(SaveRequest(revision=view.revision, edits=[edit]))
    assert raised.value.code == "mixed-units"
    other = ItemEdit(
        index=7, question="", paraphrases=[], expect="", evidence=[], negatives=[],
        anchor_section="", draft=False,
    )  # fmt: skip
    with pytest.raises(ChangedOnDiskError):
        desk.save(SaveRequest(revision=view.revision, edits=[other]))


def test_files_that_cannot_be_edited_are_refused(folder: Folder) -> None:
    import gzip

    make_corpus(folder)
    folder.write("gold.jsonl.gz", gzip.compress(b'{"qid": "A"}\n'))
    done = folder.run("gold", "edit", "gold.jsonl.gz", "--corpus", "corpus")
    assert (done.exit_code, done.problems[0].code) == (2, "usage")


def test_a_taken_port_is_told(folder: Folder) -> None:
    with browsing(folder) as browser:
        run = ("gold", "edit", "gold.jsonl", "--corpus", "corpus", "--port", str(browser.port))
        done = folder.run(*run)
        assert (done.exit_code, done.problems[0].code) == (2, "usage")
        assert str(browser.port) in done.problems[0].message
