"""The citation objects of the big APIs name the hits that they stand for.

The responses have the shapes that the APIs document.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.formats.hits import hit
from ragauge.formats.imports.api_citations import cited_hits, references_in
from ragauge.formats.imports.payload import answer_in
from tests.support.cases import cases
from tests.support.spans import chain, imported, retriever, written

FIXTURES = Path(__file__).parents[3] / "fixtures" / "citations"
HITS = [
    {"id": "c1", "doc": "grass.txt", "text": "The grass is green. It grows."},
    {"id": "c2", "doc": "sky.txt", "text": "The sky  is blue."},
    {"id": "c3", "doc": "sky.txt", "text": "At night the sky is black."},
]
OPENAI = {
    "output": [
        {"type": "file_search_call", "id": "fs_1", "queries": ["sky"], "results": None},
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "It is green.",
                    "annotations": [
                        {
                            "type": "file_citation",
                            "index": 12,
                            "file_id": "file-9",
                            "filename": "grass.txt",
                        }
                    ],
                }
            ],
        },
    ]
}
ASSISTANT = {
    "role": "assistant",
    "content": [
        {
            "type": "text",
            "text": {
                "value": "It is blue 【4:0†sky.txt】.",
                "annotations": [
                    {
                        "type": "file_citation",
                        "text": "【4:0†sky.txt】",
                        "file_citation": {"file_id": "file-8", "quote": "The sky is blue."},
                    }
                ],
            },
        }
    ],
}
ANTHROPIC = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "According to the document, "},
        {
            "type": "text",
            "text": "the grass is green.",
            "citations": [
                {
                    "type": "char_location",
                    "cited_text": "The grass is green.",
                    "document_index": 2,
                    "document_title": "My Document",
                    "start_char_index": 0,
                    "end_char_index": 20,
                }
            ],
        },
        {
            "type": "text",
            "text": " and black",
            "citations": [
                {"type": "page_location", "cited_text": "other words", "document_index": 2}
            ],
        },
    ],
}
COHERE = {
    "message": {
        "role": "assistant",
        "content": [{"type": "text", "text": "Blue."}],
        "citations": [
            {
                "start": 0,
                "end": 4,
                "text": "Blue",
                "sources": [{"type": "document", "id": "c2", "document": {"id": "c2"}}],
            }
        ],
    }
}
COHERE_1 = {"text": "Blue.", "citations": [{"start": 0, "end": 4, "document_ids": ["c2", "c1"]}]}
BEDROCK = {
    "output": {"text": "Blue."},
    "citations": [
        {
            "generatedResponsePart": {"textResponsePart": {"text": "Blue."}},
            "retrievedReferences": [
                {
                    "content": {"text": "The sky is blue."},
                    "location": {"type": "S3", "s3Location": {"uri": "s3://kb/sky.txt"}},
                    "metadata": {"x-amz-bedrock-kb-chunk-id": "1%3A0"},
                },
                {
                    "content": {"text": "nothing that was retrieved"},
                    "location": {"type": "S3", "s3Location": {"uri": "s3://kb/else.txt"}},
                    "metadata": {"x-amz-bedrock-kb-chunk-id": "1%3A9"},
                },
            ],
        }
    ],
}
GEMINI = {
    "candidates": [
        {
            "content": {"parts": [{"text": "Blue, "}, {"text": "they say."}], "role": "model"},
            "groundingMetadata": {
                "groundingChunks": [
                    {"retrievedContext": {"uri": "gs://x/1", "title": "n", "text": "never used"}},
                    {
                        "retrievedContext": {
                            "uri": "gs://x/2",
                            "title": "s",
                            "text": "The sky is blue.",
                        }
                    },
                ],
                "groundingSupports": [
                    {"segment": {"endIndex": 4}, "groundingChunkIndices": [1]},
                    {"segment": {"endIndex": 9}, "groundingChunkIndices": [1, 7]},
                ],
            },
        }
    ]
}


@cases(
    ("response", "answer", "cited"),
    [
        pytest.param(OPENAI, "It is green.", ["c1"], id="openai"),
        pytest.param(ASSISTANT, None, ["c2"], id="openai-assistants"),
        pytest.param(
            ANTHROPIC,
            "According to the document, the grass is green. and black",
            ["c1", "c3"],  # by what is quoted, then by the number of the document
            id="anthropic",
        ),
        pytest.param(COHERE, "Blue.", ["c2"], id="cohere"),
        pytest.param(COHERE_1, "Blue.", ["c2", "c1"], id="cohere-1"),
        pytest.param(BEDROCK, "Blue.", ["c2", "1%3A9"], id="bedrock"),
        pytest.param(GEMINI, "Blue, they say.", ["c2"], id="gemini"),
    ],
)
def test_a_response_cites_the_hits_that_its_objects_mean(
    tmp_path: Path, response: dict[str, Any], answer: str | None, cited: list[str]
) -> None:
    references = references_in(response)
    assert references is not None
    assert cited_hits(references, HITS) == cited
    if answer is None:
        return
    documents = {"metadata": json.dumps({"qid": "q"})}
    for rank, fields in enumerate(HITS):
        for name in ("id", "text"):
            field = "content" if name == "text" else name
            documents[f"retrieval.documents.{rank}.document.{field}"] = fields[name]
        documents[f"retrieval.documents.{rank}.document.metadata"] = json.dumps(
            {"file": fields["doc"]}
        )
    (row,) = imported(
        written(
            tmp_path / "spans.json",
            chain(1, "q?", json.dumps(response)),
            retriever(2, None, "q?", parent=1, attributes=documents),
        )
    )
    assert (row["answer"], row["citations"]) == (answer, cited)


def test_a_file_of_two_hits_is_cited_as_itself() -> None:
    references = references_in({"annotations": [{"type": "file_citation", "filename": "sky.txt"}]})
    assert references is not None
    assert cited_hits(references, HITS) == ["sky.txt"]


def test_without_a_place_for_citations_there_are_none() -> None:
    assert references_in({"text": "x", "choices": [{"message": {"content": "y"}}]}) is None
    assert references_in("plain") is None


def test_a_response_that_nests_without_end_is_no_trouble() -> None:
    value: Any = {"citations": ["a"]}
    for _ in range(1000):
        value = {"inner": value}
    assert references_in(value) is None


def test_what_a_file_search_found_are_hits_where_no_span_retrieved(tmp_path: Path) -> None:
    """The API searched by itself: its results are in the response, with texts and no ids."""
    response = json.loads(json.dumps(OPENAI))
    response["output"][0]["results"] = [
        {"file_id": "file-9", "filename": "grass.txt", "score": 0.7, "text": "It is green."}
    ]
    (row,) = imported(written(tmp_path / "spans.json", chain(1, "q?", json.dumps(response))))
    assert row["hits"] == [{"doc": "grass.txt", "score": 0.7, "text": "It is green."}]
    # The file is that of the only hit, which is called after its text, as wherever it is read.
    assert row["citations"] == [hit(row["hits"][0], "hits[0]").id]


REAL = json.loads((FIXTURES / "responses.json").read_text("utf-8"))


CITED = [
    ("openai", "It is green.", ["c1", "cfile_1", "https://example.org/sky"]),
    ("openai-chat", "Blue.", ["https://example.org/sky"]),
    ("openai-assistants", "It is green【4:0†grass.txt】.", ["c1"]),  # by the name in the mark
    # by what is quoted, by the number of the document, by what is quoted, by no hit
    ("anthropic", "As it says, it is green.", ["c1", "c2", "c3", "https://example.org"]),
    ("cohere", "Blue.", ["c2", "c1"]),  # by its id; by the text of what a tool gave
    ("gemini", "Blue, they say.", ["c2", "https://example.org/sky"]),
    ("gemini-without-nulls", "Blue, they say.", ["c2", "https://example.org/sky"]),
    ("gemini-by-alias", "Blue, they say.", ["c2", "https://example.org/sky"]),
    ("bedrock-knowledge-base", "Blue.", ["c2", "https://wiki.example.org/x", "doc-77"]),
    # by what is quoted, by the number of the search result, by no hit
    ("bedrock-converse", "It is blue.", ["c2", "c3", "https://example.org/sky"]),
]


@cases(("name", "answer", "cited"), CITED)
def test_the_types_of_the_sdks_cite_what_they_mean(
    name: str, answer: str, cited: list[str]
) -> None:
    """`make.py` beside the fixture wrote them with the SDKs' own types."""
    references = references_in(REAL[name])
    assert references is not None
    assert answer_in(REAL[name]) == answer
    assert cited_hits(references, HITS) == cited


def test_every_response_of_the_fixture_is_tested() -> None:
    assert [name for name, _, _ in CITED] == list(REAL)


def test_a_quote_of_nothing_that_was_retrieved_is_still_a_citation() -> None:
    references = references_in({"citations": [{"cited_text": "made up"}]})
    assert references is not None
    (cited,) = cited_hits(references, HITS)
    assert cited == hit({"text": "made up"}, "").id
