#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gcc -fanalyzer and clang-tidy on every file, cppcheck on all: analyze.sh [FILE...]
# The last line is "analyze: N passed, N failed".
set -u

cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
flags=(-std=gnu11 -D_GNU_SOURCE -I.)
if [ $# -gt 0 ]; then
	files=("$@")
else
	mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.c' | grep -v '^tests/')
fi

one() {
	local f=$1 out
	out=$scratch/$(tr / _ <<<"$f")
	gcc "${flags[@]}" -O2 -fanalyzer -Werror -c -o /dev/null "$f" >"$out.gcc" 2>&1 || echo "gcc $f $out.gcc" >>"$out.bad"
	clang-tidy --quiet "$f" -- "${flags[@]}" >"$out.tidy" 2>"$out.err" || echo "clang-tidy $f $out.tidy" >>"$out.bad"
}

jobs_max=$(nproc)
for f in "${files[@]}"; do
	one "$f" &
	[ "$(jobs -rp | wc -l)" -lt "$jobs_max" ] || wait -n
done
wait
fail=$(cat "$scratch"/*.bad 2>&1 | grep -cE '^(gcc|clang-tidy) ')
for b in "$scratch"/*.bad; do
	[ -f "$b" ] || continue
	while read -r tool f log; do
		echo "not ok $tool $f"
		head -n 40 "$log" | sed 's/^/    /'
	done <"$b"
done
if ! cppcheck -q --enable=warning,performance,portability --std=c11 --library=posix --library=gnu --inline-suppr \
	--error-exitcode=2 -DAQE_CPPCHECK -I. "${files[@]}" >"$scratch/cpp" 2>&1; then
	echo "not ok cppcheck"
	head -n 60 "$scratch/cpp" | sed 's/^/    /'
	fail=$((fail + 1))
fi
total=$((${#files[@]} * 2 + 1))
echo "analyze: $((total - fail)) passed, $fail failed"
[ "$fail" = 0 ]
