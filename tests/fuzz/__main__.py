"""`make fuzz`: tries broken input for some minutes, and keeps a small case of every fault."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import campaign, deadline, keep
from tests.fuzz.case import CASES
from tests.fuzz.targets import all_targets


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="how long (default: 300)")
    parser.add_argument("--seed", type=int, help="of the cases (default: a new one)")
    parser.add_argument("--only", default="", help="targets whose names begin so")
    parser.add_argument("--case", type=int, help="only this number of each target")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cases", type=Path, default=CASES, help="where small cases are written")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    again = f'make fuzz FUZZ="--seed {seed}"'
    print(f"seed {seed}: the same again with `{again}`", flush=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        targets = all_targets(Path(folder))
    targets = [target for target in targets if target.name.startswith(options.only)]
    if not targets:
        parser.error(f"no target begins with {options.only!r}")
    results = campaign(
        targets,
        seed=seed,
        goes_on=deadline(options.seconds) if options.case is None else (lambda turn: turn < 1),
        processes=options.processes,
        first=options.case or 0,
        say=lambda line: print(line, flush=True),
    )
    print(f"{sum(results.tried.values()):,} cases of {len(targets)} targets, "
          f"{len(results.found)} faults")  # fmt: skip
    options.cases.mkdir(parents=True, exist_ok=True)
    for signature, found in results.found.items():
        path = keep(found, options.cases)
        print(f"- {found.finding.kind} ({results.times[signature]} times): {found.finding.words}\n"
              f"  again: --seed {seed} --only {found.case.target} --case {found.number}\n"
              f"  kept: {path}, {path.stat().st_size:,} bytes", flush=True)  # fmt: skip
    return 1 if results.found else 0


if __name__ == "__main__":
    sys.exit(main())
