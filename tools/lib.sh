# Shared by the scripts of this folder: sourced, never run.
#
# Exit codes, as in sysexits.h:
#   69  something outside is missing: no registry, no package of that name
#   74  no space left, or the disk cannot be written
#   77  not allowed: neither root nor sudo without a password
readonly EX_UNAVAILABLE=69 EX_IOERR=74 EX_NOPERM=77

# fail CODE MESSAGE...: one line on stderr, then the end.
fail() {
  local code="$1"
  shift
  echo "${0##*/}: $*" >&2
  exit "$code"
}

# free_space FOLDER...: "3.2G free in FOLDER, ..."
free_space() {
  local folder texts=()
  for folder in "$@"; do
    [[ -d "$folder" ]] && texts+=("$(df -h --output=avail "$folder" | tail -1 | tr -d ' ') free in $folder")
  done
  local IFS=,
  echo "${texts[*]}" | sed 's/,/, /g'
}

# fail_from_log LOG WHAT: says in one line why the step that wrote LOG did not work.
fail_from_log() {
  local log="$1" what="$2"
  if grep -qiE 'no space left|have enough free space|disk quota exceeded' "$log"; then
    fail $EX_IOERR "$what: the disk is full ($(free_space "$root/.deps" "${TMPDIR:-/tmp}" /var)):" \
      "free some space and run this again"
  fi
  if grep -qiE 'permission denied|read-only file system|are you root' "$log"; then
    fail $EX_NOPERM "$what: not allowed: $(grep -iE 'permission denied|read-only|are you root' "$log" | head -1)"
  fi
  fail $EX_UNAVAILABLE "$what: $(grep -iE '^(E:|error:)' "$log" | head -1 | cut -c1-200 |
    grep . || echo 'the package registry cannot be reached') (is there a network? whole output: $log)"
}

# begin_fetch TARGET: sets `fresh`, an empty folder beside TARGET that is gone at the end, and `log`, a file.
begin_fetch() {
  fresh="$(mkdir -p "$(dirname "$1")" && mktemp -d "$1.XXXXXX" 2>/dev/null)" ||
    fail $EX_IOERR "cannot write to $root/.deps: is the disk full, or the folder somebody else's?"
  trap 'rm -rf "$fresh"' EXIT
  # Not in .deps: where that is full, the log would not say so.
  log="$(mktemp -t "muster-${0##*/}.XXXXXX")" || fail $EX_IOERR "cannot write to ${TMPDIR:-/tmp}: is the disk full?"
}
