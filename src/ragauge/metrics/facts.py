"""Facts: the yes-or-no findings about one record, as bits of one integer."""

from __future__ import annotations

from enum import IntFlag, unique


@unique
class Fact(IntFlag):
    """What is true of a record; a column holds the sum."""

    ERRORED = 1
    ANSWER = 2  # there is an answer: a claim, a text, a citations list, or a flag
    REFUSED = 4
    LISTED = 8  # there is a citations list, perhaps empty
    CITED = 16
    CITED_RELEVANT = 32  # a citation is in the evidence
    IN_CONTEXT = 64  # every citation is among the hits
    CONTAINED = 128  # the claim is contained
    ODD_CITATIONS = 256  # the citations field holds something that is not a list
    ECHO = 512  # there is a constraints_echo list
    ECHOED = 1024  # every locked constraint is in it
    BY_TOKEN = 2048  # which rule decided that this is a refusal
    BY_FLAG = 4096
    BY_GROUNDED = 8192
    BY_PATTERN = 16384
    MISSING = 32768
    REPEATED = 65536  # an id stands more than once among the hits
    CITES_DECIDED = 1 << 17  # CITED_RELEVANT was decided by places, not by ids
    CONTEXT_DECIDED = 1 << 18  # IN_CONTEXT likewise
    CITES_SECTION = 1 << 19  # a citation lies in the anchor section
    ACCURATE = 1 << 20  # a cited span agrees with a gold span
    STRINGS_OK = 1 << 21  # every string that must be there is, and none that must not
    GROUNDED = 1 << 22  # the trace says that the answer is grounded
    DISORDERED = 1 << 23  # ranks or scores disagree with the order of the hits
    RESOLVED = 1 << 24  # every citation is known: among these hits, or other hits of the run
    GROUNDED_KNOWN = 1 << 25  # the trace says whether it is grounded
    CITES_SPAN = 1 << 26  # a citation has a span of its own
    BY_NATURAL = 1 << 27  # without REFUSED: it reads like a refusal, and only the token counts
    SAYS_REFUSED = 1 << 28  # a flag says so, and flags are not read
    CITES_IN_TEXT = 1 << 29  # there is no list: the text has numbers or ids of hits in brackets
    OVERSAMPLED = 1 << 30  # kept by a higher rate than that of all traffic


LAMBDA_STATES = ("→", "←", "<>", "×")
"""The states of λ: convergent, divergent, recursive, chaotic."""
