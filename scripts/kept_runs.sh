#!/usr/bin/env bash
# Runs of the main branch, kept in a git branch of their own: one commit with the newest run files.
#
#   kept_runs.sh fetch URL BRANCH FOLDER            ends with 9 if URL has no such branch
#   kept_runs.sh keep URL BRANCH FILE LAST [--pin]  makes the branch if need be
#
# Git runs in a repository of its own, without settings and hooks of the checkout or the machine: a
# pull request may have written them. RAGAUGE_GIT_TOKEN signs in to URL if it is set; no program but
# git is given it. RAGAUGE_COMMAND is how ragauge is called.
set -euo pipefail

token="${RAGAUGE_GIT_TOKEN:-}"
unset RAGAUGE_GIT_TOKEN

fail() {
  echo "kept_runs.sh: $1" >&2
  exit 2
}

absolute() { # a path that stays the same in another folder; an address of a server as it is
  case "$1" in
    /* | ?:[/\\]* | *://* | *@*:*) printf '%s' "$1" ;;
    *) printf '%s/%s' "$PWD" "$1" ;;
  esac
}

# Git in its own repository. Settings go through the environment, where no list of processes shows
# them, and that of this subshell alone.
alone() (
  for name in $(compgen -e | grep '^GIT_' || true); do unset "$name"; done
  export GIT_DIR="$work/git" GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
  export GIT_AUTHOR_NAME=ragauge GIT_AUTHOR_EMAIL=ragauge@localhost
  export GIT_COMMITTER_NAME=ragauge GIT_COMMITTER_EMAIL=ragauge@localhost
  export GIT_CONFIG_COUNT=4
  export GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/dev/null
  export GIT_CONFIG_KEY_1=core.symlinks GIT_CONFIG_VALUE_1=false
  export GIT_CONFIG_KEY_2=http.followRedirects GIT_CONFIG_VALUE_2=false
  export GIT_CONFIG_KEY_3=core.autocrlf GIT_CONFIG_VALUE_3=false
  if [[ -n $token && $url == https://* ]]; then
    export GIT_CONFIG_COUNT=5
    export GIT_CONFIG_KEY_4="http.$url.extraheader"
    GIT_CONFIG_VALUE_4="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$token" | base64 | tr -d '\n')"
    export GIT_CONFIG_VALUE_4
  fi
  git "$@"
)

# Sets `commit` to that of the branch, or to nothing where the server says that there is none.
find_branch() {
  local listed code=0
  listed="$(alone ls-remote --exit-code "$url" "refs/heads/$branch")" || code=$?
  case "$code" in
    0) commit="${listed%%[[:space:]]*}" ;;
    2) commit="" ;;
    *) fail "the branch $branch could not be asked for" ;;
  esac
}

unpack_into() { # folder: the files of the commit
  mkdir -p "$1"
  alone fetch --quiet --no-tags --depth 1 "$url" "refs/heads/$branch" || fail "the branch $branch could not be fetched"
  alone --work-tree="$1" read-tree FETCH_HEAD
  alone --work-tree="$1" checkout-index --all --force
}

fetch() { # folder
  find_branch
  [[ -n $commit ]] || exit 9
  unpack_into "$1"
}

# One commit without a parent: the branch does not grow by what it no longer keeps. It replaces only
# the commit that was read; if another job was faster, all is done again on top of what it kept.
keep() { # file last [--pin]
  local file="$1" last="$2" pin="${3:-}" attempt tree new
  for attempt in 1 2 3 4 5; do
    rm -rf "$work/kept" "$work/git/index"
    find_branch
    mkdir -p "$work/kept"
    [[ -z $commit ]] || unpack_into "$work/kept"
    printf 'Runs of ragauge, the newest ones and a pinned one: baselines of later runs.\n' >"$work/kept/README.md"
    "${RAGAUGE_COMMAND:-ragauge}" runs keep "$file" --in "$work/kept" --last "$last" ${pin:+--pin}
    alone --work-tree="$work/kept" add --all --force .
    tree="$(alone write-tree)"
    new="$(alone commit-tree "$tree" -m "Kept runs of ragauge")"
    if alone push --quiet --force-with-lease="refs/heads/$branch:$commit" "$url" "$new:refs/heads/$branch"; then
      return 0
    fi
    sleep "$attempt"
  done
  fail "the branch $branch could not be written: is the job allowed to?"
}

[[ $# -ge 4 ]] || fail "it takes fetch URL BRANCH FOLDER, or keep URL BRANCH FILE LAST [--pin]"
command="$1" url="$(absolute "$2")" branch="$3" path="$(absolute "$4")"
[[ $branch =~ ^[0-9A-Za-z][0-9A-Za-z._/-]*$ && $branch != *..* ]] || fail "that is no name of a branch"
work="$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/ragauge.XXXXXX")"
trap 'rm -rf "$work"' EXIT
cd "$work"
alone init --quiet --bare
case "$command" in
  fetch) fetch "$path" ;;
  keep) keep "$path" "${5:?}" "${6:-}" ;;
  *) fail "it takes fetch or keep" ;;
esac
