# shellcheck shell=bash
# Sourced by the scripts beside it: where the tree is, how the scripts speak, how much fits on this
# machine. Everything for people goes to stderr; stdout belongs to the programs that are run.

# The physical path, so that a script works through a symbolic link to its folder as well.
house_root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
house_script=scripts/$(basename "$0")

# say TEXT: one line about what happens next.
say() { printf '== %s\n' "$*" >&2; }

# fail TEXT CURE: the end, with what to do about it. CURE may have several lines.
fail() {
  printf '\n%s: %s\n' "$house_script" "$1" >&2
  printf '%s\n' "$2" | sed '1s/^/  cure: /; 2,$s/^/        /' >&2
  exit 1
}

# memory_mib: what the machine has, or less where the control group allows less.
memory_mib() {
  local total limit=max
  total=$(awk '/^MemTotal:/ {print int($2 / 1024)}' /proc/meminfo 2>/dev/null || true)
  [ -r /sys/fs/cgroup/memory.max ] && limit=$(cat /sys/fs/cgroup/memory.max)
  case $limit in
    '' | *[!0-9]*) ;;
    *) [ $((limit / 1048576)) -lt "${total:-0}" ] && total=$((limit / 1048576)) ;;
  esac
  echo "${total:-2048}"
}

# job_count: as many compilers as there are processors, but no more than memory holds: a file with
# typed actors takes up to 0.7 GB.
job_count() {
  local jobs fit
  jobs=$(nproc 2>/dev/null || echo 1)
  fit=$(($(memory_mib) / 700))
  [ "$fit" -lt "$jobs" ] && jobs=$fit
  [ "$jobs" -lt 1 ] && jobs=1
  echo "$jobs"
}

# need_space FOLDER MIB: fails when the file system of FOLDER has less room than that.
need_space() {
  local folder=$1 mib=$2 free
  while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
  free=$(df -Pm "$folder" | awk 'NR == 2 {print $4}')
  [ "${free:-0}" -ge "$mib" ] || fail \
    "$folder has only ${free:-0} MiB free; this needs about $mib MiB" \
    "make room there (an old build folder can go: rm -rf $house_root/build), then run this again"
}

# need_program NAME PURPOSE: fails when NAME is not installed.
need_program() {
  command -v "$1" >/dev/null || fail "the program '$1' is missing" \
    "scripts/install-dependencies $2"
}

# configure PRESET: cmake's configure step, with the usual causes of a failure named.
configure() {
  need_program cmake build
  need_program ninja build
  need_program "${CXX:-g++}" build
  (cd "$house_root" && cmake --preset "$1" >&2) || fail "the configure step of preset '$1' failed" \
    "read the first CMake Error above.
If a package was not found: scripts/install-dependencies build
If the compiler or the tree has changed since: rm -rf $house_root/build/$1"
}

# build_preset PRESET [TARGET...]
build_preset() {
  local preset=$1
  shift
  (cd "$house_root" && cmake --build --preset "$preset" -j "$(job_count)" ${1:+--target "$@"} >&2) ||
    fail "the build of preset '$preset' failed" \
      "read the first 'error:' above.
If it says 'No space left on device': make room under $house_root/build
If a compiler was killed: memory ran out; free some, or: cmake --build --preset $preset -j 1"
}

# find_shared: exports GRISTMILL_SHARED, the folder of example problems that some tests read, when
# it lies beside the checkout. Says loudly when those tests have nothing to read.
find_shared() {
  if [ -z "${GRISTMILL_SHARED:-}" ] && [ -d "$house_root/../shared/data" ]; then
    GRISTMILL_SHARED=$(cd -P "$house_root/../shared" && pwd -P)
  fi
  if [ -n "${GRISTMILL_SHARED:-}" ]; then
    [ -d "$GRISTMILL_SHARED/data" ] || fail \
      "GRISTMILL_SHARED=$GRISTMILL_SHARED has no folder 'data'" \
      "name the folder that holds data/sol-execbench, or unset the variable"
    export GRISTMILL_SHARED
    say "tests on the example problems read $GRISTMILL_SHARED/data"
  else
    printf '%s\n' \
      '***********************************************************************************' \
      '** SKIPPED: the tests that read the SOL-ExecBench example problems. There is no   **' \
      '** folder ../shared/data beside this checkout, and GRISTMILL_SHARED is not set.   **' \
      '***********************************************************************************' >&2
  fi
}

# source_files: the C++ files of the tree, one a line: those that git knows or would add.
source_files() {
  (
    cd "$house_root" || exit 1
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
      git ls-files --cached --others --exclude-standard -- '*.hpp' '*.cpp'
    else
      find . \( -path ./build -o -path ./runs -o -path ./.git \) -prune -o \
        \( -name '*.hpp' -o -name '*.cpp' \) -print | sed 's|^\./||'
    fi | sort -u | while IFS= read -r file; do
      # A file that was deleted but is still in the index is not there to be read.
      [ -f "$file" ] && printf '%s\n' "$file"
    done
  )
}
