"""Known places: the texts of a corpus and of a list of chunks as an index that hits are placed in.

Apart from `hit_placer`, which worker processes import: reading lists of chunks takes numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import chain

from ragauge.corpus.chunk_list import listed_documents
from ragauge.corpus.hit_placer import HitPlacer
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.place_index import PlaceIndex, write_place_index
from ragauge.files.temporary_file import temporary_file
from ragauge.model.chunk import Chunk


def opened_place_index(
    stack: ExitStack, lookup: Lookup | None, chunks: Mapping[str, Chunk]
) -> str | None:
    """The path of an index of places, which is gone with the stack; None where no text is known.

    It holds the documents of the corpus, and those that the list of chunks has the text of.
    """
    listed = listed_documents(chunks)
    documents = {} if lookup is None else lookup.documents
    if not listed and not documents:
        return None
    index = stack.enter_context(temporary_file())
    # One document at a time: a corpus may be larger than memory has room for twice.
    in_corpus = ((doc, lookup.text(doc)) for doc in documents) if lookup is not None else ()
    in_list = ((doc, text) for doc, text in listed.items() if doc not in documents)
    write_place_index(index.file, chain(in_corpus, in_list))
    return index.path


def opened_placer(
    stack: ExitStack, lookup: Lookup | None, chunks: Mapping[str, Chunk]
) -> HitPlacer | None:
    """What places hits in a corpus or in a list of chunks; None where no text is known."""
    path = opened_place_index(stack, lookup, chunks)
    return None if path is None else HitPlacer(PlaceIndex(path), chunks)
