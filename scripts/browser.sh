#!/usr/bin/env bash
# Gets Chromium for the tests in a real browser, where this machine allows it without asking.
# Where it does not, those tests are skipped and say so.
set -uo pipefail

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
hint="the tests in a real browser are skipped; to have them, install Chromium (Debian: apt-get install chromium)"
if ! command -v apt-get >/dev/null; then
  echo "$hint"
  exit 0
fi
if [ "$(id -u)" = 0 ]; then
  as_root=()
elif sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  echo "$hint"
  exit 0
fi
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends
  chromium fonts-dejavu-core)
"${install[@]}" >/dev/null 2>&1 && exit 0
# The lists of packages may be missing or old.
"${as_root[@]}" apt-get update -qq >/dev/null 2>&1
"${install[@]}" >/dev/null 2>&1 || echo "$hint"
exit 0
