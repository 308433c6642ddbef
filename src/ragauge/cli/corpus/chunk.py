"""`ragauge corpus chunk`: cut the documents of a corpus into chunks, as a list of chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragauge.cli.options import choice, whole_number
from ragauge.cli.output import spare
from ragauge.cli.streams import print_line

if TYPE_CHECKING:
    from ragauge.corpus.chunking import ChunkBy, ChunkPolicy, SizeUnit

_SIZE = 1000
_FITS = {
    "size": ("size", "overlap", "hard"),
    "section": ("max_size", "overlap", "hard"),
    "block": ("max_size", "overlap", "hard", "merge_to"),
}
_NEEDS_SIZE = ("overlap", "hard")


@click.command("chunk", short_help="Cut a corpus into chunks, by size, section or block.")
@click.argument("corpus", metavar="CORPUS")
@click.option("-o", "out", required=True, metavar="FILE", help="The list of chunks, JSON Lines.")
@choice(
    "--by",
    of=["size", "section", "block"],
    default="size",
    help="What a chunk is: a piece of some size, the own text of a section, or a block.",
)
@whole_number(
    "--size",
    least=1,
    metavar="N",
    help=f"How large a chunk may be, with --by size (default: {_SIZE}).",
)
@whole_number(
    "--overlap",
    least=0,
    metavar="N",
    help="How much of a chunk the next one repeats (default: 0).",
)
@choice(
    "--unit",
    of=["char", "word", "byte"],
    default="char",
    help="What sizes and the overlap count.",
)
@click.option(
    "--hard",
    is_flag=True,
    default=None,
    help="Cut exactly at the size; otherwise at the end of a sentence or word in its last 15 %.",
)
@whole_number("--max-size", least=1, metavar="N", help="Cut sections or blocks that are larger.")
@whole_number(
    "--merge-to",
    least=1,
    metavar="N",
    help="Join neighbouring blocks of a section up to this size.",
)
@click.option("--text", "with_text", is_flag=True, help="Write the text of each chunk too.")
def COMMAND(  # noqa: N802
    corpus: str, out: str, by: ChunkBy, unit: SizeUnit, with_text: bool, **sizes: int | None
) -> int:
    """Cut the documents of CORPUS into chunks and write where each one lies.

    The list is what --chunks reads: id, doc, start, end (in bytes), section, type, and hashes of
    text, document and settings. No character is cut in two. The same corpus and settings give the
    same bytes. Exit code 5 if there is nothing to cut.
    """
    spare(out, {"corpus": corpus})
    policy = _policy(by, unit, {name: value for name, value in sizes.items() if value is not None})
    for line in _write(corpus, out, policy, with_text=with_text):
        print_line(line)
    return 0


def _policy(by: ChunkBy, unit: SizeUnit, sizes: dict[str, int]) -> ChunkPolicy:
    """The settings; those that would be without effect are refused."""
    from ragauge.corpus.chunking import ChunkPolicy

    for name in sizes:
        if name not in _FITS[by]:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} has no meaning with --by {by}")
    size = sizes.get("size", _SIZE) if by == "size" else sizes.get("max_size")
    if size is None:
        for name in _NEEDS_SIZE:
            if name in sizes:
                raise click.UsageError(f"--{name} needs --max-size with --by {by}")
    overlap = sizes.get("overlap", 0)
    if size is not None and overlap >= size:
        raise click.UsageError(f"--overlap must be less than the size: {overlap} of {size}")
    return ChunkPolicy(
        by=by,
        size=size,
        overlap=overlap,
        unit=unit,
        hard=bool(sizes.get("hard")),
        merge_to=sizes.get("merge_to"),
    )


def _write(folder: str, out: str, policy: ChunkPolicy, *, with_text: bool) -> list[str]:
    """Write the list, and say what is in it."""
    import msgspec

    from ragauge.corpus.chunking import cut_document, length_of
    from ragauge.corpus.lookup import Lookup
    from ragauge.corpus.manifest import read_corpus
    from ragauge.errors import RagaugeError
    from ragauge.files.atomic_write import write_atomically
    from ragauge.model import phrases
    from ragauge.text import plain

    lookup = Lookup(read_corpus(folder))
    lines: list[str] = []
    lengths: list[int] = []
    outside = empty = 0
    for document in lookup.corpus.documents:
        before, covered = len(lines), 0
        at = 0
        for cut in cut_document(lookup, document, policy):
            row = cut.row(document, policy.hash, with_text=with_text)
            lines.append(msgspec.json.encode(row).decode())
            lengths.append(length_of(cut.text.encode(), policy.unit))
            covered += max(0, cut.end - max(cut.start, at))
            at = max(at, cut.end)
        outside += document.bytes - covered
        empty += len(lines) == before
    if not lines:
        message = f"there is no text to cut in `{folder}`"
        hint = "nothing was written; see what `ragauge corpus build` said of its documents"
        raise RagaugeError.of("nothing-measured", message, hint=hint)
    write_atomically(out, "".join(f"{line}\n" for line in lines))
    lengths.sort()
    documents = len(lookup.documents) - empty
    summary = [
        plain(f"wrote {out}, policy {policy.hash}"),
        f"chunks     {len(lines):,} of {phrases.count(documents, 'document')}",
        f"length     {lengths[0]:,} to {lengths[-1]:,} {policy.unit}s, "
        f"half of them up to {lengths[(len(lengths) - 1) // 2]:,}",
    ]
    if outside:
        between = "white space" if policy.by == "size" else "headings and white space"
        summary.append(f"left out   {outside:,} bytes: {between}")
    if empty:
        summary.append(f"empty      {phrases.count(empty, 'document')} without a chunk")
    return summary
