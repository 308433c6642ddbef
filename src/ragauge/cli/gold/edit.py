"""`ragauge gold edit`: a form in the browser to write questions and mark evidence."""

from __future__ import annotations

import click


@click.command("edit", short_help="Edit a gold set in the browser.")
@click.argument("gold", metavar="GOLD")
@click.option("--corpus", required=True, metavar="DIR", help="The corpus that evidence lies in.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Where to listen (default: any free)."
)
@click.option("--dialect", default="auto", metavar="NAME", help="Force the names of a dialect.")
def COMMAND(gold: str, corpus: str, port: int, dialect: str) -> int:  # noqa: N802
    """Show GOLD and the texts of the corpus in a form; what is saved goes into GOLD.

    Select text in the document and add it as evidence or as a negative; write the question, say
    what is expected, and save. The link works once, in one browser, on this machine; nothing is
    sent anywhere else. A file that somebody else has changed meanwhile is not written over. Ctrl-C
    ends.
    """
    from ragauge.corpus.lookup import open_corpus
    from ragauge.gold.editor.form import GoldEditor
    from ragauge.gold.editor.server import FormServer
    from ragauge.gold.lock import lock_beside
    from ragauge.text import plain

    editor = GoldEditor(gold, open_corpus(corpus), dialect, lock=lock_beside(gold))
    with FormServer(editor, port) as server:
        click.echo(plain(f"editing {gold}: open {server.url}"))
        click.echo("Ctrl-C ends")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("ended")
    return 0
