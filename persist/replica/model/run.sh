#!/usr/bin/env bash
# Checks log.pml with spin: what must hold, and what must fail when a protection is taken away.
#
#   run.sh          the runs that take seconds
#   run.sh deep     all of them, with larger bounds: some minutes and 4 GB of memory
set -euo pipefail
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
full= # Set in the runs of deep.

# Installs spin, where that is possible.
../../../.ci/install spin spin || true
for program in spin gcc; do
	if ! command -v $program >/dev/null; then
		echo "model: SKIPPED: $program is missing and could not be installed"
		exit
	fi
done

# check RESULT NAME=VALUE… [FLAG…] runs one search. RESULT is holds, or fails.
check() {
	local want=$1 got=broken flags=() name at speed=-O1
	shift
	at=$(mktemp -d -p "$dir")
	declare -A bounds=([N]=2 [IDS]=4 [FORGET]=0 [LOSE]=0 [LATE]=0 [STALE]=0 [HOLE]=0 [CRASH]=0)
	for name in "$@"; do
		case $name in *=*) bounds[${name%=*}]=${name#*=} ;; *) flags+=("-D$name") ;; esac
	done
	for name in "${!bounds[@]}"; do flags+=("-D$name=${bounds[$name]}"); done
	if [ -z "$full" ] && [ "$want" = fails ]; then speed=-O0; fi # Few states: compiling takes longer.
	cp log.pml "$at"
	(cd "$at" && spin -a "${flags[@]}" log.pml && gcc $speed -w -DSAFETY -DMEMLIM=4000 ${SEARCH:-} -o pan pan.c && ./pan -m200000 -E -n ${HASH:-}) >"$at/out" 2>&1 || true
	if grep -q 'assertion violated' "$at/out" && grep -q 'errors: 1$' "$at/out"; then
		got=fails
	elif grep -q 'errors: 0$' "$at/out" && ! grep -q -e 'max search depth too small' -e 'MEMLIM' -e '^error' "$at/out"; then
		got=holds
	fi
	printf '%-5s %10s states %6s s  %s\n' $got "$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$at/out")" \
		"$(sed -n 's/.*elapsed time \([0-9.]*\) seconds.*/\1/p' "$at/out")" "$*${SEARCH:+ (bit state)}"
	if [ $got != "$want" ]; then
		echo "model: FAILED: it must be that it $want: $*"
		if [ $got = broken ]; then tail -n 5 "$at/out"; fi
		if [ $got = fails ]; then (cd "$at" && spin -t -p -g -l "${flags[@]}" log.pml | tail -n 60); fi
		exit 1
	fi
	rm -r "$at"
}

# two runs the checks of standard input, two at a time.
two() {
	local line running=0
	while read -r line; do
		[ -n "$line" ] || continue
		# shellcheck disable=SC2086
		check $line &
		if [ $((running += 1)) -ge 2 ]; then
			wait -n || { wait; exit 1; }
			running=$((running - 1))
		fi
	done
	while [ $running -gt 0 ]; do
		wait -n || { wait; exit 1; }
		running=$((running - 1))
	done
}

two <<'END'
holds N=3 IDS=3 FORGET=1
holds IDS=5
holds LOSE=1 LATE=1
holds STALE=2
holds HOLE=1
holds FORGET=1 LOSE=1
holds FORGET=1 STALE=1 HOLE=1
holds FORGET=1 CRASH=1
fails NOCOND
fails FORGET=1 NOCHECK
fails FORGET=1 NOCLAIM
fails FORGET=1 NOFAIL
fails FORGET=1 QUIET
fails FORGET=1 NOCHAIN
fails HOLE=1 NOHOLE
fails STALE=2 NOSURE
END
if [ "${1:-}" = deep ]; then
	full=yes
	two <<'END'
holds N=3 FORGET=1
holds N=3 LOSE=1 LATE=1
holds FORGET=1 LATE=1
holds FORGET=1 LOSE=1 LATE=1
holds FORGET=1 LOSE=1 STALE=1 HOLE=1
holds FORGET=2 IDS=5
fails FORGET=2 IDS=5 NORECHECK
END
	SEARCH=-DBITSTATE HASH=-w28 two <<'END'
fails N=3 IDS=5 FORGET=1 LATE=1 NOTRAIL
END
fi
echo 'model: all runs ended as they must'
