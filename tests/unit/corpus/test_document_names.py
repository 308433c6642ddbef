"""Names of documents: which one is meant by a path that begins otherwise."""

from __future__ import annotations

from ragauge.corpus.document_names import DocumentMatch, DocumentNames, prefix_between
from tests.support.cases import cases

NAMES = DocumentNames(["b.md", "a/b.md", "a/c.md", "x/d.md", "y/d.md", "déjà vu.md"])
AMBIGUOUS = DocumentMatch(ambiguous=True)
NONE = DocumentMatch()


@cases(
    ("name", "match"),
    [
        ("a/b.md", DocumentMatch("a/b.md")),
        ("b.md", DocumentMatch("b.md")),  # its own name comes before ends of others
        ("/data/docs/a/b.md", DocumentMatch("a/b.md")),  # the longest end
        ("/data/docs/b.md", DocumentMatch("b.md")),
        ("./a/b.md", DocumentMatch("a/b.md")),
        ("C:\\docs\\a\\c.md", DocumentMatch("a/c.md")),
        ("file:///srv/a/c.md", DocumentMatch("a/c.md")),
        ("https://example.com/x/d.md", DocumentMatch("x/d.md")),
        ("file:///d%C3%A9j%C3%A0%20vu.md", DocumentMatch("déjà vu.md")),
        ("c.md", DocumentMatch("a/c.md")),
        ("d.md", AMBIGUOUS),
        ("z/d.md", NONE),  # it shares an end with both, and is neither
        ("/srv/xa/c.md", NONE),  # parts are whole
        ("", NONE),
    ],
)
def test_a_document_is_known_by_the_end_of_its_path(name: str, match: DocumentMatch) -> None:
    assert NAMES.match(name) == match
    assert NAMES.match(name) == match  # and once more, as it was remembered


@cases(
    ("name", "doc", "prefix"),
    [
        ("/data/a/b.md", "a/b.md", "/data/"),
        ("C:\\data\\b.md", "b.md", "C:\\data\\"),
        ("b.md", "a/b.md", "a/"),
        ("a/b.md", "a/b.md", ""),
        ("other", "a/b.md", ""),
    ],
)
def test_the_prefix_between_two_names(name: str, doc: str, prefix: str) -> None:
    assert prefix_between(name, doc) == prefix
