# Shared by the scripts beside it: strict mode, the root of the tree as working directory, help, steps with a clock.

set -euo pipefail
script=scripts/$(basename "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf '%s: %s\n' "$script" "$1" >&2
  exit 1
}

# For an argument the script does not know itself. The leading comment of a script is its help.
help_or_refuse() {
  case $1 in
    --help | -h) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$script" && exit 0 ;;
    *) fail "unknown argument '$1' (hint: --help shows what it takes)" ;;
  esac
}

say() { printf '== %s\n' "$1"; }

# step <log> <text> <command…>: the command's output goes to the log; the reader sees the text, a sign of life every
# few seconds and the time taken, and on failure the end of the log.
step() {
  local log=$1 text=$2 start=$SECONDS pulse
  shift 2
  say "$text" | tee -a "$log"
  # The sleep outlives a killed pulse; it must not keep the reader's pipe open meanwhile.
  (while sleep 10 &>/dev/null; do printf '   ... %d s\n' $((SECONDS - start)); done) &
  pulse=$!
  # shellcheck disable=SC2064  # the id is wanted as it is now
  trap "kill $pulse 2>/dev/null || true" EXIT
  if ! "$@" >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "failed after $((SECONDS - start)) s: $text (hint: the whole output is in $log)"
  fi
  kill "$pulse"
  wait "$pulse" 2>/dev/null || true
  trap - EXIT
  printf '   done, %d s\n' $((SECONDS - start))
}

build() {
  say "build the preset $1"
  cmake --preset "$1" --log-level=WARNING
  cmake --build --preset "$1"
}

# Every C++ file that is or could be committed, separated by NUL.
cpp_files() { git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp'; }
