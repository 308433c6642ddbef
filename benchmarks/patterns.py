"""Owns the search for slow regular expressions: every pattern of the package on hostile texts.

Run as `python benchmarks/patterns.py`. Texts are made of what a pattern itself takes: a beginning
that it accepts, a part that is repeated, and an end at which it fails. Where the time grows faster
than the text, the pattern is named with its exponent (1 is linear) and the text, and the exit code
is 1. Times are compared with each other only. `--rounds` tries more texts, `--only NAME` one
pattern; `--citations` tells the time a byte of answers that open ever more lists of citations.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import math
import pkgutil
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import ragauge
from ragauge.scoring.refusals import LazyPattern
from ragauge.text import citations_in

BOUNDED = {
    "ragauge.corpus.parsers.html._CHARSET": "is given the first 1,024 bytes of a page",
    "ragauge.corpus.parsers.rst._ROLE": "is given titles of up to 4,000 characters",
    "ragauge.corpus.parsers.rst._STRESSED": "is given titles of up to 4,000 characters",
    "ragauge.model.error_reasons._VARYING": "is given messages of up to 480 characters",
}
"""Patterns that are not linear and need not be: why not."""

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split")
LARGEST = 65536
SIZES = (64, 512, 4096)  # characters of the texts that are tried
SUSPECT = 0.4e-3  # seconds: a text that takes less at the largest size is not looked at again
ENOUGH = 10e-3  # seconds: what takes longer is not tried on a larger text
GROWTH = 1.5  # an exponent above this is more than noise
TRIES = 3
MOST_TEXTS = 150  # in a round: a pattern of many alternatives has ten thousand of them
ENDS = ("\0", "!", "\n", "x", " ", "]")
CATEGORIES = {
    sre.CATEGORY_DIGIT: "7",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_WORD: "-",
}


class NamedPattern(NamedTuple):
    """A pattern, where it is, and the methods that are called on it."""

    name: str
    compiled: re.Pattern[Any]
    methods: tuple[str, ...]


class SlowText(NamedTuple):
    """A text on which a method of a pattern takes more than linear time."""

    method: str
    exponent: float
    begin: str
    part: str
    end: str

    def text(self, size: int) -> str:
        """The text with about so many characters."""
        return self.begin + self.part * max(1, size // len(self.part)) + self.end


# --- the patterns of the package ---


def all_patterns() -> list[NamedPattern]:
    """Every pattern that a module of the package holds, or that a call has as plain text."""
    named: dict[tuple[Any, int], tuple[str, set[str]]] = {}
    calls = _method_calls()
    for module in pkgutil.walk_packages(ragauge.__path__, "ragauge."):
        if module.name.endswith("__main__"):
            continue
        loaded = importlib.import_module(module.name)
        for variable, value in vars(loaded).items():
            for field, compiled in _patterns_in(value):
                key = (compiled.pattern, compiled.flags)
                whole_name = f"{module.name}.{variable}{'.' * bool(field)}{field}"
                name, methods = named.setdefault(key, (whole_name, set()))
                if field:  # of a struct, which any module may have
                    methods |= {method for user in calls.values() for method in user.get(field, ())}
                    continue
                # What begins with an underscore is used in its own module only.
                is_public = not variable.startswith("_")
                users = calls.values() if is_public else [calls[loaded.__file__]]
                used = {method for user in users for method in user[variable]}
                # One that is handed on is used by a parameter's name.
                handed = {
                    method
                    for name, used_of in calls[loaded.__file__].items()
                    for method in used_of
                    if name == name.lower() and method != "split"  # text has a `split` too
                }
                methods |= used or handed
    for name, pattern, method in _inline_patterns():
        compiled = re.compile(pattern)
        _, methods = named.setdefault((compiled.pattern, compiled.flags), (name, set()))
        methods.add(method)
    return [
        NamedPattern(name, re.compile(*key), tuple(sorted(methods)) or ("search", "match"))
        for key, (name, methods) in sorted(named.items(), key=lambda entry: entry[1][0])
    ]


def _patterns_in(
    value: object, depth: int = 0, field: str = ""
) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns of a value, each with the field of a struct that holds it, if one does."""
    if isinstance(value, re.Pattern):
        yield field, value
    elif isinstance(value, LazyPattern):
        yield field, value.compiled
    elif depth < 4 and isinstance(value, Mapping):
        for inner in value.values():
            yield from _patterns_in(inner, depth + 1, field)
    elif depth < 4 and isinstance(value, tuple | list):
        for inner in value:
            yield from _patterns_in(inner, depth + 1, field)
    elif depth < 4 and hasattr(type(value), "__struct_fields__"):
        for name in value.__struct_fields__:  # type: ignore[attr-defined]
            yield from _patterns_in(getattr(value, name), depth + 1, name)


def _trees() -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(Path(ragauge.__path__[0]).rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def _method_calls() -> dict[str | None, dict[str, set[str]]]:
    """The methods that are used of each variable in each file: called, or handed on."""
    calls: dict[str | None, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                calls[str(path)][name].add(node.attr)
    return calls


def _inline_patterns() -> Iterator[tuple[str, Any, str]]:
    """Patterns that stand in a call such as `re.sub("...", ...)`."""
    for path, tree in _trees():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if is_re and node.func.attr in METHODS and isinstance(node.args[0], ast.Constant):
                yield f"{path.stem}:{node.lineno}", node.args[0].value, node.func.attr


# --- texts ---


def _sample(tree: Any, choose: random.Random, repeats: int = 1) -> str:
    """A text that a parsed pattern takes, or nearly: assertions are passed over."""
    pieces: list[str] = []
    for operation, argument in tree:
        if operation is sre.LITERAL:
            pieces.append(chr(argument))
        elif operation is sre.NOT_LITERAL:
            pieces.append("b" if argument == ord("a") else "a")
        elif operation is sre.ANY:
            pieces.append("a")
        elif operation is sre.IN:
            pieces.append(_member(argument, choose))
        elif operation is sre.BRANCH:
            pieces.append(_sample(choose.choice(argument[1]), choose, repeats))
        elif operation is sre.SUBPATTERN:
            pieces.append(_sample(argument[3], choose, repeats))
        elif operation is sre.ATOMIC_GROUP:
            pieces.append(_sample(argument, choose, repeats))
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, inner = argument
            count = max(least, min(most, choose.randint(0, repeats)))
            pieces += [_sample(inner, choose, repeats) for _ in range(count)]
    return "".join(pieces)


def _member(members: Sequence[tuple[Any, Any]], choose: random.Random) -> str:
    """A character of a set."""
    options: list[str] = []
    for operation, argument in members:
        if operation is sre.NEGATE:
            excluded = {a for o, a in members if o is sre.LITERAL}
            return choose.choice([c for c in "a -:.\n" if ord(c) not in excluded] or ["é"])
        if operation is sre.LITERAL:
            options.append(chr(argument))
        elif operation is sre.RANGE:
            options.append(chr(choose.choice(argument)))
        elif operation is sre.CATEGORY:
            options.append(CATEGORIES.get(argument, "a"))
    return choose.choice(options)


def _inner_trees(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each repeated part with what stands before it in its own sequence, outer ones first."""
    for place, (operation, argument) in enumerate(tree):
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield tree[:place], argument[2]
            yield from _inner_trees(argument[2])
        elif operation is sre.SUBPATTERN:
            yield from ((_joined(tree[:place], b), p) for b, p in _inner_trees(argument[3]))
        elif operation is sre.ATOMIC_GROUP:
            yield from ((_joined(tree[:place], b), p) for b, p in _inner_trees(argument))
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                yield from ((_joined(tree[:place], b), p) for b, p in _inner_trees(branch))
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            yield from ((_joined(tree[:place], b), p) for b, p in _inner_trees(argument[1]))


def _joined(one: Any, other: Any) -> list[Any]:
    return [*one, *other]


def texts_for(pattern: re.Pattern[Any], seed: int) -> Iterator[SlowText]:
    """Texts that a pattern may be slow on, without a verdict yet."""
    source, flags = pattern.pattern, pattern.flags
    if isinstance(source, bytes):
        source = source.decode("latin-1")
    tree = _parser.parse(source, flags)
    choose = random.Random(seed)
    begins, parts = {""}, set()
    for before, part in _inner_trees(tree):
        begins.add(_sample(before, choose))
        parts |= {_sample(part, choose, 2), _sample(before, choose)}
        parts.add(_sample([*before, *part], choose, 2))
    for place in range(1, len(tree) + 1):
        parts |= {_sample(tree[:place], choose), _sample(tree[place - 1 : place], choose, 2)}
    parts.discard("")
    single = sorted(parts)
    parts |= {one + choose.choice(single) for one in single}
    for part in sorted(parts):
        for begin in choose.sample(sorted(begins), min(3, len(begins))):
            for end in ("", *choose.sample(ENDS, 2)):
                yield SlowText("", 0.0, begin, part, end)


# --- times ---


def _calls(compiled: re.Pattern[Any], method: str) -> Callable[[Any], object]:
    if method == "finditer":
        return lambda text: sum(1 for _ in compiled.finditer(text))
    if method == "sub":
        empty: Any = b"" if isinstance(compiled.pattern, bytes) else ""
        return lambda text: compiled.sub(empty, text)
    return getattr(compiled, method)  # type: ignore[no-any-return]


def _seconds(call: Callable[[Any], object], text: Any, tries: int = 1) -> float:
    best = math.inf
    for _ in range(tries):
        begin = time.thread_time()  # not the wall clock: other processes may be at work
        call(text)
        best = min(best, time.thread_time() - begin)
    return best


def slow_text(pattern: NamedPattern, *, rounds: int) -> SlowText | None:
    """A text on which a pattern takes more than linear time, if one is found."""
    is_bytes = isinstance(pattern.compiled.pattern, bytes)
    for seed in range(rounds):
        texts = list(texts_for(pattern.compiled, seed))
        if len(texts) > MOST_TEXTS:
            texts = random.Random(seed).sample(texts, MOST_TEXTS)
        for tried in texts:
            for method in pattern.methods:
                call = _calls(pattern.compiled, method)

                def text(size: int, tried: SlowText = tried) -> Any:
                    whole = tried.text(size)
                    return whole.encode("latin-1", "replace") if is_bytes else whole

                exponent = _exponent(call, text)
                if exponent > GROWTH:
                    return tried._replace(method=method, exponent=exponent)
    return None


def _exponent(call: Callable[[Any], object], text: Callable[[int], Any]) -> float:
    """How the time grows with the text; 0 where it is too short to be told."""
    for size in SIZES:
        seconds = _seconds(call, text(size))
        if seconds > ENOUGH:
            break
    if seconds < SUSPECT:
        return 0.0
    exponent = _confirmed(call, text, size)
    # What has a bound of its own, such as {1,256}, grows at first and then no more.
    while exponent > GROWTH and seconds < ENOUGH and size < LARGEST:
        size *= 4
        seconds = _seconds(call, text(size))
        exponent = _confirmed(call, text, size)
    return exponent


def _confirmed(call: Callable[[Any], object], text: Callable[[int], Any], size: int) -> float:
    # Again, and the least of several tries and of several verdicts: what disturbs makes things look
    # slower, and never faster.
    verdicts = []
    for _ in range(TRIES):
        quarter, whole = (_seconds(call, text(part), TRIES) for part in (size // 4, size))
        verdicts.append(math.log(whole / quarter, 4))
        if verdicts[-1] <= GROWTH:
            break
    return min(verdicts)


# --- the citations of an answer ---


def citation_times(sizes: Sequence[int] = (100_000, 1_600_000)) -> list[tuple[int, float]]:
    """Nanoseconds a byte for answers that open ever more lists of citations, and close none."""
    times = []
    for size in sizes:
        parts = ("citations: [", "citations", "citations ")
        answers = [part * (size // len(part)) for part in parts]
        seconds = max(_seconds(citations_in, answer, TRIES) for answer in answers)
        times.append((size, seconds / size * 1e9))
    return times


def main() -> int:
    """Try every pattern; name those that are slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", metavar="NAME", default="")
    parser.add_argument("--citations", action="store_true")
    asked = parser.parse_args()
    if asked.citations:
        times = citation_times()
        for size, nanoseconds in times:
            print(f"{size:>9,} bytes  {nanoseconds:7.3f} ns a byte")
        print(f"ratio {times[-1][1] / times[0][1]:.2f} (1 is linear)")
        return 0
    slow = 0
    patterns = [pattern for pattern in all_patterns() if asked.only in pattern.name]
    for pattern in patterns:
        if pattern.name in BOUNDED:
            print(f"{pattern.name} {BOUNDED[pattern.name]}", flush=True)
            continue
        worst = slow_text(pattern, rounds=asked.rounds)
        if worst is not None:
            slow += 1
            print(
                f"{pattern.name}.{worst.method}: exponent {worst.exponent:.1f} on "
                f"{worst.begin!r} + {worst.part!r} * n + {worst.end!r}",
                flush=True,
            )
    print(f"{len(patterns)} patterns, {slow} of them slow")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
