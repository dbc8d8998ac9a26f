#!/usr/bin/env bash
# Tests of the shell scripts, with stand-ins for the programs that would change this machine.
set -euo pipefail
scripts=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
count=0

# A folder of stand-ins that comes first in PATH. `stand_in NAME <<EOF` writes one.
mkdir "$scratch/bin"
stand_in() {
  { echo '#!/bin/bash' && cat; } >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}
# Only what the scripts use from the system, so that sudo and apt are never the real ones.
for program in bash env sh cat sed awk grep id dirname basename mktemp rm tee df fold nproc tail \
  date ls; do
  ln -s "$(command -v $program)" "$scratch/bin/$program"
done

# run COMMAND...: keeps exit code and output of a command that sees only the stand-ins.
run() {
  code=0
  output=$(env -u GRISTMILL_SKIP_INSTALL PATH="$scratch/bin" \
    GRISTMILL_OS_RELEASE="$scratch/os-release" "$@" 2>&1 </dev/null) || code=$?
}

# check RULE CONDITION...: one rule; the condition is a command.
check() {
  local rule=$1
  shift
  count=$((count + 1))
  if ! "$@"; then
    failures=$((failures + 1))
    printf 'FAILED: %s\n  exit code %s, output:\n%s\n' "$rule" "$code" "$output" >&2
  fi
}
ended_with() { [ "$code" = "$1" ]; }
said() { grep -qF -- "$1" <<<"$output"; }
did_not_say() { ! said "$1"; }

install=$scripts/install-dependencies
printf 'ID=debian\nVERSION_ID="12"\n' >"$scratch/os-release"

# Everything installed.
stand_in dpkg-query <<'END'
shift 2
for package; do echo "$package installed"; done
END
run "$install" check
check "nothing missing: nothing is done" ended_with 0
check "nothing missing: says so" said "are installed"

# clang-19 is missing; the machine has the right to install and a network.
stand_in dpkg-query <<'END'
shift 2
for package; do [ "$package" = clang-19 ] || echo "$package installed"; done
exit 1
END
stand_in id <<'END'
echo 0
END
stand_in apt-get <<END
echo "apt-get \$*" >>"$scratch/apt.log"
END
run "$install"
check "a missing package is installed" ended_with 0
check "only the missing package is installed" grep -q 'install --no-install-recommends clang-19$' "$scratch/apt.log"
check "the package lists are fetched first" grep -q ' update$' "$scratch/apt.log"

rm -f "$scratch/apt.log"
run "$install" --dry-run
check "a dry run says the command" said "apt-get install --no-install-recommends -y clang-19"
check "a dry run installs nothing" [ ! -e "$scratch/apt.log" ]

run "$install" test --list
check "the list of the tests holds that of the build" said "libcaf-dev"
check "the list of the tests holds torch" said "python3-torch"
check "the list of the tests holds no formatter" did_not_say "clang-format"

run "$install" everything
check "an unknown purpose is a usage error" ended_with 2

run env GRISTMILL_SKIP_INSTALL=1 "$install"
check "the installation can be switched off" said "not looked at"

# No right to install.
stand_in id <<'END'
echo 1000
END
run "$install"
check "without root and sudo it fails" ended_with 1
check "without root and sudo it prints the exact command" \
  said "apt-get update && apt-get install --no-install-recommends -y clang-19"
stand_in sudo <<'END'
echo "gristmill is not in the sudoers file." && exit 1
END
run "$install"
check "a refusal of sudo is explained" said "sudo did not let this user install packages"
rm "$scratch/bin/sudo"
stand_in id <<'END'
echo 0
END

# What apt-get can complain about.
apt_fails_with() {
  stand_in apt-get <<END
case "\$*" in *install*) echo "$1"; exit 100 ;; esac
END
  run "$install"
}
apt_fails_with "E: Temporary failure resolving 'server'"
check "no network: named" said "the package server cannot be reached"
check "no network: exit code 1" ended_with 1
apt_fails_with "E: You don't have enough free space in /var/cache/apt/archives/."
check "no disk space: named" said "no room for the packages"
apt_fails_with "E: Unable to locate package clang-19"
check "an unknown package: points at the sources" said "sources.list"
apt_fails_with "E: Could not get lock /var/lib/dpkg/lock-frontend"
check "a lock: named" said "another program is installing"
apt_fails_with "E: something else"
check "anything else: the command is shown" said "apt-get install --no-install-recommends -y clang-19"

printf 'ID=debian\nVERSION_ID="13"\n' >"$scratch/os-release"
run "$install"
check "another Debian is named" said "this is 'debian 13'"
check "another Debian: the way round is named" said "GRISTMILL_SKIP_INSTALL=1"
rm "$scratch/bin/dpkg-query"
run "$install"
check "a system without dpkg is told what to install" said "libcaf-dev"
check "every failure carries its cure" said "cure: "

# house.sh on its own.
house() { run bash -c ". '$scripts/house.sh'; $1"; }
house 'memory_mib() { echo 900; }; nproc() { echo 16; }; job_count'
check "memory limits the compilers that run at once" [ "$output" = 1 ]
house 'memory_mib() { echo 100000; }; nproc() { echo 3; }; job_count'
check "processors limit the compilers that run at once" [ "$output" = 3 ]
house 'memory_mib() { echo 300; }; nproc() { echo 3; }; job_count'
check "little memory still runs one" [ "$output" = 1 ]
house 'need_space / 999999999'
check "a full disk is named with what is needed" said "999999999 MiB"
check "a full disk ends the script" ended_with 1
house 'need_program no-such-program build'
check "a missing program points at the installer" said "scripts/install-dependencies build"

run env PATH="$PATH" "$scripts/check" no-such-step
check "an unknown step of scripts/check is a usage error" ended_with 2

# The changelog.
changelog() { run env PATH="$PATH" /usr/bin/env python3 "$scripts/changelog" --root "$scratch/tree" "$@"; }
mkdir -p "$scratch/tree/changelog.d"
printf '# Changes\n\n<!-- releases -->\n\n## 0.1.0 (2026-01-01)\n' >"$scratch/tree/CHANGELOG.md"
echo "The mill turns." >"$scratch/tree/changelog.d/mill.added.md"
changelog
check "a fragment is printed under its kind" said "- The mill turns."
changelog --check
check "a good fragment passes" ended_with 0
echo "- a list" >"$scratch/tree/changelog.d/bad.fixed.md"
changelog --check
check "a fragment that is no sentence is refused" ended_with 1
mv "$scratch/tree/changelog.d/bad.fixed.md" "$scratch/tree/changelog.d/bad.md"
changelog --check
check "a fragment without a kind is refused" ended_with 1
rm "$scratch/tree/changelog.d/bad.md"
changelog --release 0.2.0 --date 2026-02-02
check "a release takes its fragments" [ -z "$(ls "$scratch/tree/changelog.d")" ]
output=$(cat "$scratch/tree/CHANGELOG.md")
check "a release stands in the changelog" said "## 0.2.0 (2026-02-02)"
check "a release stands above the one before" \
  [ "$(grep -n '^## ' "$scratch/tree/CHANGELOG.md" | head -n 1 | cut -d' ' -f2)" = 0.2.0 ]

# The runnable blocks of the documents.
readme() { run env PATH="$PATH" /usr/bin/env python3 "$scripts/check-readme" --root "$scratch/tree" "$@"; }
printf '%s\n' '```sh runnable' 'test -f CHANGELOG.md' '```' '```sh' 'false' '```' >"$scratch/tree/README.md"
readme
check "a runnable block runs where the tree can be seen, others do not run" ended_with 0
printf '%s\n' '```console runnable' '$ false' 'output' '```' >"$scratch/tree/README.md"
readme
check "a command that fails is named" said "README.md:1: FAILED"
printf '%s\n' '```sh runnable' 'build/release/gristmill run softmax | cat' 'scripts/quickstart' '```' >"$scratch/tree/README.md"
readme --list
check "a run gets a small budget" said "gristmill run softmax --budget 8attempts | cat"
check "the quickstart gets a small budget" said "scripts/quickstart --budget 8attempts"
echo "nothing" >"$scratch/tree/README.md"
readme
check "no runnable block at all is a failure" ended_with 1

printf '%s: %d rules, %d failed\n' "$(basename "$0")" "$count" "$failures"
[ "$failures" -eq 0 ]
