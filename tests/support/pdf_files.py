"""PDF files written by hand: text at a place, in a size, over several pages.

The character 30 is the ligature of f and i.
"""

from __future__ import annotations

from collections.abc import Sequence

FONTS = {"body": "Helvetica", "bold": "Helvetica-Bold", "mono": "Courier"}
LIGATURE = b"""/CIDInit /ProcSet findresource begin begincmap
1 begincodespacerange <00> <FF> endcodespacerange
1 beginbfchar <1E> <00660069> endbfchar endcmap end"""

Shown = tuple[float, float, float, str] | tuple[float, float, float, str, str]
"""x, y, size, text and, if it is not `body`, the font."""


def pdf(
    pages: Sequence[Sequence[Shown]],
    *,
    outline: Sequence[tuple[str, int]] = (),
    title: str | None = None,
    rotate: int = 0,
    trailer: str = "",
    drawn: str = "",
) -> bytes:
    """A PDF of A4 pages; `outline` are titles with the page (from 0) that they lead to.

    `drawn` are operators for lines and boxes, on every page.
    """
    bodies: dict[int, bytes] = {}
    fonts = {name: number for number, name in enumerate(FONTS, 3)}
    for name, number in fonts.items():
        bodies[number] = (
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{FONTS[name]} "
            "/Encoding << /BaseEncoding /WinAnsiEncoding /Differences [30 /fi] >> "
            "/ToUnicode 6 0 R >>"
        ).encode()
    bodies[6] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(LIGATURE), LIGATURE)
    resources = " ".join(f"/{name} {number} 0 R" for name, number in fonts.items())
    kids = []
    for place, shown in enumerate(pages):
        page, content = 10 + 2 * place, 11 + 2 * place
        stream = b"\n".join([drawn.encode(), *(_shown(each) for each in shown)])
        bodies[content] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)
        bodies[page] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Rotate {rotate} "
            f"/Resources << /Font << {resources} >> >> /Contents {content} 0 R >>"
        ).encode()
        kids.append(f"{page} 0 R")
    bodies[2] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    free = 10 + 2 * len(pages)
    catalog = "/Type /Catalog /Pages 2 0 R"
    if outline:
        catalog += f" /Outlines {free} 0 R"
        bodies |= _outline(free, outline)
        free += 1 + len(outline)
    if title is not None:
        bodies[free] = f"<< /Title ({title}) >>".encode("cp1252")
        trailer += f" /Info {free} 0 R"
    bodies[1] = f"<< {catalog} >>".encode()
    return _file(bodies, trailer)


def ruled(heights: Sequence[float], widths: Sequence[float] = ()) -> str:
    """Operators for level lines, with upright lines between the first and the last of them."""
    first, last = (widths[0], widths[-1]) if widths else (72, 500)
    level = [f"{first} {y} m {last} {y} l S" for y in heights]
    upright = [f"{x} {heights[0]} m {x} {heights[-1]} l S" for x in widths]
    return " ".join(level + upright)


def _shown(shown: Shown) -> bytes:
    x, y, size, text = shown[:4]
    font = shown[4] if len(shown) == 5 else "body"
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET".encode("cp1252")


def _outline(first: int, entries: Sequence[tuple[str, int]]) -> dict[int, bytes]:
    last = first + len(entries)
    found = {
        first: f"<< /Type /Outlines /First {first + 1} 0 R /Last {last} 0 R "
        f"/Count {len(entries)} >>".encode()
    }
    for number, (title, page) in enumerate(entries, first + 1):
        near = f"/Prev {number - 1} 0 R " if number > first + 1 else ""
        near += f"/Next {number + 1} 0 R " if number < last else ""
        found[number] = (
            f"<< /Title ({title}) /Parent {first} 0 R {near}"
            f"/Dest [{10 + 2 * page} 0 R /XYZ 0 800 0] >>"
        ).encode("cp1252")
    return found


def _file(bodies: dict[int, bytes], trailer: str) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places: dict[int, int] = {}
    for number in sorted(bodies):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, bodies[number])
    start, size = len(out), max(bodies) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        kind = b"n" if number in places else b"f"
        out += b"%010d %05d %s \n" % (places.get(number, 0), 0, kind)
    out += f"trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\n".encode()
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)
