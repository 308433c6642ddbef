#!/usr/bin/env bash
# Gets the JavaScript packages of the tests of clients into build/javascript, where npm is there.
# Where it is not, those tests are skipped and say so.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
from=tests/fixtures/javascript
to=build/javascript
cmp --silent "$from/package-lock.json" "$to/installed.json" && exit 0
hint="the tests with clients in JavaScript are skipped; to have them, install Node.js 20 and npm"
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo "$hint"
  exit 0
fi
mkdir -p "$to"
cp "$from/package.json" "$from/package-lock.json" "$to/"
# Each file is checked against the hash in the lock file, and no script of a package is run.
if npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; then
  cp "$to/package-lock.json" "$to/installed.json"
else
  echo "$hint"
fi
exit 0
