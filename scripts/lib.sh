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

# Makes one line of what ninja says: how much is done. On a terminal it stays one line; elsewhere each tenth is one.
show_percentage() {
  local text=$1 line percent told=-1 tenth=10
  [[ -t 1 ]] && tenth=1
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2] / tenth * tenth))
    ((percent > told)) || continue
    told=$percent
    if [[ -t 1 ]]; then printf '\r'; fi
    printf '== %s: %d %%' "$text" "$percent"
    if [[ ! -t 1 ]]; then printf '\n'; fi
  done
  if [[ -t 1 ]] && ((told >= 0)); then printf '\n'; fi
}

# build <preset> [<target>…]: the reader sees a percentage, and on failure what failed; all else goes to a log.
build() {
  local log=build/$1/build.log start=$SECONDS targets=()
  if (($# > 1)); then targets=(--target "${@:2}"); fi
  say "build the preset $1 (log: $log)"
  mkdir -p "build/$1"
  if ! cmake --preset "$1" --log-level=WARNING &>"$log"; then
    cat "$log" >&2
    fail "cannot configure the preset $1 (hint: scripts/setup installs what is missing)"
  fi
  if ! NINJA_STATUS='[%f/%t] ' cmake --build --preset "$1" "${targets[@]}" 2>&1 | tee -a "$log" |
    show_percentage "build the preset $1"; then
    sed -n '/^FAILED:/,$p' "$log" | head -n 40 >&2
    fail "cannot build the preset $1 (hint: the whole output is in $log)"
  fi
  printf '   done, %d s\n' $((SECONDS - start))
}

# Every C++ file that is or could be committed, separated by NUL.
cpp_files() { git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu'; }
