#!/usr/bin/env bash
# What action.yml runs: `action.sh install`, then `action.sh run`.
#
# Every input comes as an environment variable INPUT_NAME and is only ever an argument or a file:
# no value is read as shell, as a workflow command or as a second output.
set -euo pipefail

fail() { # message: a fault of the workflow, which no run can mend
  echo "::error title=ragauge::$1" >&2
  exit 2
}

is_true() { # name value
  case "$2" in
    true) return 0 ;;
    false | "") return 1 ;;
    *) fail "the input $1 must be true or false" ;;
  esac
}

find_python() {
  local name
  for name in python3 python; do
    if command -v "$name" >/dev/null; then
      echo "$name"
      return
    fi
  done
  fail "there is no Python on the path: set python-version"
}

venv_of() { echo "${RUNNER_TEMP:?}/ragauge-environment"; }

install_ragauge() {
  local version="${INPUT_RAGAUGE_VERSION:-}" extras="${INPUT_EXTRAS:-}" what venv python
  [[ $version == installed ]] && return 0
  [[ $version =~ ^[0-9A-Za-z.+!]*$ ]] || fail "ragauge-version is no version"
  [[ $extras =~ ^[0-9a-z,_-]*$ ]] || fail "extras are names with commas between them"
  what="${GITHUB_ACTION_PATH:?}${extras:+[$extras]}"
  [[ -n $version ]] && what="ragauge${extras:+[$extras]}==$version"
  venv="$(venv_of)"
  python="$(find_python)"
  cd / # `python -m` imports from the current folder first, and that is the checkout
  "$python" -m venv "$venv"
  python="$venv/bin/python"
  [[ -x $python ]] || python="$venv/Scripts/python"
  "$python" -m pip --disable-pip-version-check --quiet install "$what"
}

find_ragauge() {
  local venv
  if [[ ${INPUT_RAGAUGE_VERSION:-} == installed ]]; then
    command -v ragauge || fail "ragauge-version is installed, and there is no ragauge on the path"
    return
  fi
  venv="$(venv_of)"
  if [[ -x $venv/bin/ragauge ]]; then echo "$venv/bin/ragauge"; else echo "$venv/Scripts/ragauge"; fi
}

# A text that nobody who wrote a file could guess.
secret() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# Runs a command whose output may hold lines of others that look like workflow commands.
muted() {
  local end code=0
  end="$(secret)"
  echo "::stop-commands::$end"
  "$@" 2>&1 || code=$?
  echo "::$end::"
  return "$code"
}

output() { # name value: a value may hold anything but the secret
  local end
  end="$(secret)"
  printf '%s<<%s\n%s\n%s\n' "$1" "$end" "$2" "$end" >>"${GITHUB_OUTPUT:-/dev/null}"
}

# A run that passes may be up for review, and where nothing was asked of it, nothing was decided.
verdict_of() { # exit code, file of scores, whether the comparison decided
  case "$1" in
    0)
      "$(find_python)" -I -c '
import json, sys
try:
    with open(sys.argv[1], encoding="utf-8") as file:
        verdict = json.load(file)["verdict"]
    print(verdict["status"] if verdict["gates"] or sys.argv[2] else "undecided")
except (OSError, ValueError, LookupError, TypeError):
    print("undecided")
' "$2" "${3:-}"
      ;;
    1) echo fail ;;
    2) echo usage ;;
    3) echo bad-input ;;
    4) echo not-evaluable ;;
    5) echo nothing-measured ;;
    *) echo bug ;;
  esac
}

seen_from_workspace() { # a path that is seen from working-directory
  local folder="${INPUT_WORKING_DIRECTORY:-.}"
  case "$1" in
    "" | /* | ?:[/\\]*) printf '%s' "$1" ;;
    *) if [[ $folder == . ]]; then printf '%s' "$1"; else printf '%s' "${folder%/}/$1"; fi ;;
  esac
}

pull_request() { # the number, from the input, the ref or the event; nothing if there is none
  if [[ -n ${INPUT_PULL_REQUEST:-} ]]; then
    echo "$INPUT_PULL_REQUEST"
  elif [[ ${GITHUB_REF:-} =~ ^refs/pull/([1-9][0-9]*)/ ]]; then
    echo "${BASH_REMATCH[1]}"
  elif [[ -f ${GITHUB_EVENT_PATH:-} ]]; then
    "$(find_python)" -I -c '
import json, sys
try:
    with open(sys.argv[1], encoding="utf-8") as file:
        event = json.load(file)
    number = (event.get("pull_request") or {}).get("number")
    if type(number) is int:
        print(number)
except (OSError, ValueError, AttributeError):
    pass
' "$GITHUB_EVENT_PATH"
  fi
}

# The id of the comment that begins with the marker and is the author's own; pages of JSON come in.
find_comment() { # marker author
  "$(find_python)" -I -c '
import json, sys
marker, author = sys.argv[1:]
text, place = sys.stdin.buffer.read().decode("utf-8", "replace"), 0
while place < len(text):
    if text[place].isspace():
        place += 1
        continue
    page, place = json.JSONDecoder().raw_decode(text, place)
    for each in page:
        first = (each.get("body") or "").splitlines()[:1]
        if first == [marker] and (each.get("user") or {}).get("login") == author:
            print(int(each["id"]))
            sys.exit()
' "$1" "$2" 2>/dev/null
}

post_comment() { # body marker
  local body="$1" marker="$2" number id repository="${GITHUB_REPOSITORY:?}" pages
  number="$(pull_request)"
  if [[ -z $number ]]; then
    echo "::notice title=ragauge::no comment: this run belongs to no pull request"
    return 0
  fi
  if [[ -z $token ]] || ! command -v gh >/dev/null; then
    echo "::warning title=ragauge::no comment: it takes github-token, and gh on the path"
    return 0
  fi
  pages="$work/comments.json"
  if ! muted gh_quiet "$pages" --paginate "repos/$repository/issues/$number/comments?per_page=100" ||
    ! id="$(find_comment "$marker" "${INPUT_COMMENT_AUTHOR:-github-actions[bot]}" <"$pages")"; then
    echo "::warning title=ragauge::no comment: those that are there could not be read"
    return 0
  fi
  if [[ -n $id ]]; then
    set -- --method PATCH "repos/$repository/issues/comments/$id"
  else
    set -- --method POST "repos/$repository/issues/$number/comments"
  fi
  if ! muted gh_quiet /dev/null "$@" --field "body=@$body"; then
    echo "::warning title=ragauge::the comment was refused: does the job have pull-requests: write?"
  fi
}

gh_quiet() { # file for its output, arguments of gh api
  local file="$1"
  shift
  GH_TOKEN="$token" gh api "$@" >"$file"
}

check_inputs() { # before anything runs: what is wrong with the workflow
  local hyphened='^[0-9A-Za-z.]+(-[0-9A-Za-z.]+)*$'
  local worse='^(regression|loss)(:[0-9]{1,9}|:[0-9]{1,2}([.][0-9]{1,6})?%)?$' # as `compare` reads it
  is_true annotations "${INPUT_ANNOTATIONS:-}" || true
  is_true summary "${INPUT_SUMMARY:-}" || true
  is_true comment "${INPUT_COMMENT:-}" || true
  is_true allow-no-baseline "${INPUT_ALLOW_NO_BASELINE:-}" || true
  is_true pin "${INPUT_PIN:-}" || true
  [[ ${INPUT_BEST_OF:-0} =~ ^(0|[1-9][0-9]{0,2})$ ]] || fail "best-of must be a number, up to 999"
  [[ ${INPUT_KEEP_LAST:-20} =~ ^[1-9][0-9]{0,2}$ ]] || fail "keep-last must be a number from 1 to 999"
  [[ ${INPUT_RUNS_BRANCH:-x} =~ ^[0-9A-Za-z][0-9A-Za-z._/-]*$ && ${INPUT_RUNS_BRANCH:-} != *..* ]] ||
    fail "runs-branch is no name of a branch"
  if [[ -z ${INPUT_RUNS_BRANCH:-} ]]; then
    [[ -z ${INPUT_KEEP_RUN:-} ]] || fail "keep-run needs runs-branch"
    if is_true allow-no-baseline "${INPUT_ALLOW_NO_BASELINE:-}"; then
      fail "allow-no-baseline needs runs-branch: a file that is not there does not tell whether there ever was one"
    fi
  fi
  [[ ${INPUT_COMMENT_NAME:-ragauge} =~ $hyphened ]] ||
    fail "comment-name takes letters, digits, dots and single hyphens"
  [[ ${INPUT_PULL_REQUEST:-1} =~ ^[1-9][0-9]*$ ]] || fail "pull-request must be a number"
  if [[ -n ${INPUT_FAIL_ON:-} ]]; then
    [[ $INPUT_FAIL_ON =~ $worse ]] ||
      fail "fail-on must be regression or loss, with :2 for two questions or :1% for a share of them"
    [[ -n ${INPUT_BASELINE:-}${INPUT_RUNS_BRANCH:-} ]] || fail "fail-on needs a baseline to compare with"
  fi
}

# What runs of the main branch are kept in their branch, and where. Without the branch there never was
# one; a branch without runs, or one that cannot be read, is an error, whatever allow-no-baseline says.
fetch_runs() { # folder: sets `kept` to it, or to nothing
  local code=0
  kept=""
  [[ -n ${INPUT_RUNS_BRANCH:-} ]] || return 0
  RAGAUGE_GIT_TOKEN="$token" muted bash "${GITHUB_ACTION_PATH:?}/scripts/kept_runs.sh" fetch \
    "${INPUT_RUNS_REPOSITORY:?}" "$INPUT_RUNS_BRANCH" "$1" || code=$?
  case "$code" in
    0) kept="$1" ;;
    9)
      if ! is_true allow-no-baseline "${INPUT_ALLOW_NO_BASELINE:-}"; then
        echo "::error title=ragauge::there is no branch $INPUT_RUNS_BRANCH yet: keep a run of the main branch first, or say allow-no-baseline for the first one"
        kept="$1" # which ragauge will find empty: not evaluable
        return 0
      fi
      echo "::warning title=ragauge::there is no branch $INPUT_RUNS_BRANCH yet: gates on a drop${INPUT_FAIL_ON:+ and fail-on} are left out until a run of the main branch is kept"
      ;;
    *) fail "the runs in the branch $INPUT_RUNS_BRANCH could not be read; the log says why" ;;
  esac
}

keep_run() {
  local code=0
  check_inputs
  case "${GITHUB_EVENT_NAME:-}" in
    pull_request*) fail "a run of a pull request is no baseline: keep those of the main branch" ;;
  esac
  cd -- "${INPUT_WORKING_DIRECTORY:-.}" 2>/dev/null || fail "there is no folder as working-directory names it"
  [[ -f $INPUT_KEEP_RUN ]] || fail "there is no file as keep-run names it"
  set -- "${INPUT_RUNS_REPOSITORY:?}" "$INPUT_RUNS_BRANCH" "$INPUT_KEEP_RUN" "${INPUT_KEEP_LAST:-20}"
  if is_true pin "${INPUT_PIN:-}"; then set -- "$@" --pin; fi
  RAGAUGE_COMMAND="$(find_ragauge)" RAGAUGE_GIT_TOKEN="$token" \
    muted bash "${GITHUB_ACTION_PATH:?}/scripts/kept_runs.sh" keep "$@" || code=$?
  if [[ $code != 0 ]]; then
    echo "::error title=ragauge::the run was not kept; the log says why"
    return "$code"
  fi
  echo "::notice title=ragauge::the run was kept in the branch $INPUT_RUNS_BRANCH"
}

run_ragauge() {
  local marker ragauge code scored=0 compared=0 line base="" head copies=0
  local scores="${INPUT_SCORES:-ragauge-scores.json}" run="${INPUT_RUN_FILE:-ragauge-run.jsonl.gz}"
  local -a scoring comparing
  check_inputs
  cd -- "${INPUT_WORKING_DIRECTORY:-.}" 2>/dev/null || fail "there is no folder as working-directory names it"
  work="$(mktemp -d "${RUNNER_TEMP:-/tmp}/ragauge.XXXXXX")"
  ragauge="$(find_ragauge)"
  marker="<!-- ragauge:${INPUT_COMMENT_NAME:-ragauge} -->"

  scoring=(score --full -o "json:$scores" "--save-run=$run" -o "summary:$work/summary.md"
    -o "comment:$work/comment.md" -o "github:$work/annotations.txt")
  comparing=(compare -o "summary:$work/compared.md" -o "comment:$work/compared-comment.md"
    -o "github:$work/compared.txt")
  fetch_runs "$work/kept"
  if [[ -n $kept ]]; then
    base="latest:$kept"
    scoring+=("--baseline=$base" "--baseline=pinned:$kept")
    [[ ${INPUT_BEST_OF:-0} == 0 ]] || scoring+=("--baseline=best-of:$INPUT_BEST_OF:$kept")
  elif [[ -n ${INPUT_RUNS_BRANCH:-} ]]; then
    scoring+=(--allow-no-baseline)
  fi
  while IFS= read -r line || [[ -n $line ]]; do
    line="${line%$'\r'}"
    [[ -n $line ]] || continue
    if [[ -f $line && ($line -ef $scores || $line -ef $run) ]]; then # compared as it was before this run
      copies=$((copies + 1))
      mkdir -p "$work/copy$copies"
      cp -- "$line" "$work/copy$copies/"
      line="$work/copy$copies/${line##*/}"
    fi
    scoring+=("--baseline=$line")
    [[ -n $base || $line == best-of:* ]] || base="$line"
  done <<<"${INPUT_BASELINE:-}"
  if [[ -n ${INPUT_GATES:-} ]]; then
    scoring+=("--gates=$INPUT_GATES") # which judges drops, too
    [[ -f $INPUT_GATES ]] && comparing+=("--gates=$INPUT_GATES")
  fi
  if [[ -n ${INPUT_CONFIG:-} ]]; then
    scoring+=("--config=$INPUT_CONFIG")
    comparing+=("--config=$INPUT_CONFIG")
  fi
  [[ -n ${INPUT_GOLD:-} ]] && scoring+=("--gold=$INPUT_GOLD")
  [[ -n ${INPUT_TRACE:-} ]] && scoring+=("--trace=$INPUT_TRACE")
  [[ -n ${INPUT_PROFILE:-} ]] && scoring+=("--profile=$INPUT_PROFILE")
  [[ -n ${INPUT_JUNIT_REPORT:-} ]] && scoring+=(-o "junit:$INPUT_JUNIT_REPORT")
  [[ -n ${INPUT_HTML_REPORT:-} ]] && scoring+=(-o "html:$INPUT_HTML_REPORT")
  [[ -n ${INPUT_FAIL_ON:-} ]] && comparing+=("--fail-on=$INPUT_FAIL_ON")
  while IFS= read -r line || [[ -n $line ]]; do
    line="${line%$'\r'}"
    [[ -n $line ]] && scoring+=("$line")
  done <<<"${INPUT_ARGS:-}"

  muted "$ragauge" "${scoring[@]}" || scored=$?
  head="$run"
  [[ $base == *.json ]] && head="$scores" # scores have no hits, and are compared with scores
  if [[ -n $base && -f $work/summary.md ]]; then
    muted "$ragauge" "${comparing[@]}" -- "$base" "$head" || compared=$?
    case "$compared" in
      0 | 1 | 4 | 5) ;;
      *) rm -f -- "$work"/compared* ;; # what is there may be half of it
    esac
  fi
  code="$scored" # the run itself goes before the comparison
  [[ $code == 0 ]] && code="$compared"

  report_outputs "$code" "$scores" "$run"
  if is_true annotations "${INPUT_ANNOTATIONS:-true}"; then
    annotate "$scored" "$compared"
  fi
  write_pages "$scored" "$compared" "$marker"
  if is_true summary "${INPUT_SUMMARY:-true}"; then
    cat "$work/step.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
  fi
  if is_true comment "${INPUT_COMMENT:-}"; then
    post_comment "$work/body.md" "$marker"
  fi
  return "$code"
}

report_outputs() { # exit code, file of scores, file of the run
  local scores="" run="" junit="" html="" decided=""
  if [[ -f $work/summary.md ]]; then # then all files of this run were written
    [[ $1 == 5 ]] || run="$3" # of nothing no run is saved
    scores="$2" junit="${INPUT_JUNIT_REPORT:-}" html="${INPUT_HTML_REPORT:-}"
  fi
  [[ -n ${INPUT_FAIL_ON:-} && -f $work/compared.md ]] && decided=yes
  output verdict "$(verdict_of "$1" "$scores" "$decided")"
  output exit-code "$1"
  output run-file "$(seen_from_workspace "$run")"
  output scores "$(seen_from_workspace "$scores")"
  output junit-report "$(seen_from_workspace "$junit")"
  output html-report "$(seen_from_workspace "$html")"
  output comment-body "$work/body.md"
}

# What the comparison came to where it failed: its own headline, or that there is none.
compared_headline() { # exit code of the comparison
  if [[ -f $work/compared.md ]]; then
    sed -n '1s/^#* ragauge: //p' "$work/compared.md"
  else
    printf '%s: the comparison with the baseline could not be made (exit code %s)\n' \
      "$(verdict_of "$1" "" | tr 'a-z-' 'A-Z ')" "$1"
  fi
}

# The last line of annotations is the headline: where only the comparison failed, it says so.
annotate() { # exit code of the scores, exit code of the comparison
  if [[ -f $work/annotations.txt ]]; then
    if [[ $1 == 0 && $2 != 0 ]]; then sed '$d' "$work/annotations.txt"; else cat "$work/annotations.txt"; fi
  fi
  [[ $2 == 0 ]] && return 0
  if [[ -f $work/compared.txt ]]; then
    cat "$work/compared.txt"
  else
    echo "::error title=ragauge::$(compared_headline "$2"); the log says why"
  fi
}

# The page of the step, and the body of the comment, whose first line is the marker. The headline is
# that of the exit code of the job.
write_pages() { # exit code of the scores, exit code of the comparison, marker
  local file page head
  if [[ ! -f $work/summary.md ]]; then
    printf '## ragauge: stopped with exit code %s\n\nThe log of the step says why.\n' "$1" >"$work/step.md"
    printf '%s\n### ragauge: stopped with exit code %s\n\nThe log of the job says why.\n' "$3" "$1" >"$work/body.md"
    return 0
  fi
  cat "$work/summary.md" >"$work/step.md"
  tail -n +2 "$work/comment.md" >"$work/body.md"
  for file in compared.md:step.md:'##' compared-comment.md:body.md:'###'; do
    head="${file##*:}" file="${file%:*}"
    page="$work/${file##*:}" file="$work/${file%%:*}"
    if [[ $1 == 0 && $2 != 0 ]]; then
      { echo "$head ragauge: $(compared_headline "$2")" && tail -n +2 "$page"; } >"$page.new"
      mv -- "$page.new" "$page"
    fi
    if [[ -f $file ]]; then
      { echo && grep -v '^<!-- ragauge:' "$file" | sed '1s/^\(#*\) ragauge: /\1 Base against head: /'; } >>"$page"
    elif [[ $2 != 0 ]]; then
      printf '\n%s Base against head\n\n%s. The log says why.\n' "$head" "$(compared_headline "$2")" >>"$page"
    fi
  done
  { echo "$3" && cat "$work/body.md"; } >"$work/body.new"
  mv -- "$work/body.new" "$work/body.md"
}

token="${GH_TOKEN:-}" # only `gh` and git are given it
unset GH_TOKEN
case "${1:-}" in
  install) install_ragauge ;;
  run) if [[ -n ${INPUT_KEEP_RUN:-} ]]; then keep_run; else run_ragauge; fi ;;
  *) fail "action.sh takes install or run" ;;
esac
