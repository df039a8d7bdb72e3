#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# House rules that a tool can check: lint.sh BUILD_DIR. One line a check, findings indented.
# Each check reads all files in one process: a loop of greps costs a minute.
# The last line is "lint: N passed, N failed".
set -u

cd "$(dirname "$0")/../.." || exit 1
build=${1:-build/release}
here=tests/lint
pass=0
fail=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

git ls-files --cached --others --exclude-standard | grep -vxFf <(git ls-files --deleted) >"$scratch/all"
grep -E '\.[ch]$' "$scratch/all" >"$scratch/sources"
grep -v '^tests/' "$scratch/sources" >"$scratch/ours"
grep -E '\.(sh|bash|bats)$|^\.ci/run$' "$scratch/all" >"$scratch/scripts"

each() { xargs -r -d '\n' -a "$scratch/$1" "${@:2}"; }

# awk's part of every check below: the folder of a path, the tables.
readonly FOLDER='
	function folder(p) { return p ~ /^shim\/core\// ? "shim/core" : substr(p, 1, index(p, "/") - 1) }
	function lower_to(p) { return index(p, "/") ? folder(p) : "" }
	FNR == NR { if ($0 !~ /^#/) { split($0, t, "\t"); prefix[t[1]] = t[2]; may[t[1]] = " " t[3] " " } next }'

layers() {
	each ours awk "$FOLDER"'
		FNR == 1 { own = folder(FILENAME); if (!(own in may)) print FILENAME ": folder " own " is not in layers.txt" }
		/^[ \t]*#[ \t]*include[ \t]*"/ {
			inc = $0; sub(/^[^"]*"/, "", inc); sub(/".*/, "", inc); to = lower_to(inc)
			if (to == "" || !(to in may)) print FILENAME ": include \"" inc "\" is not a path from the root"
			else if (to == "shim" && own != "shim") print FILENAME ": includes " inc "; nobody includes a file directly below shim/"
			else if (to != own && !index(may[own], " " to " ")) print FILENAME ": " own " must not include " inc
		}' "$here/layers.txt"
}

foreign() {
	each ours awk '
		FNR == NR { if ($0 !~ /^#/) { split($0, t, "\t"); owners[t[1]] = " " t[2] " " } next }
		/^[ \t]*#[ \t]*include[ \t]*</ {
			inc = $0; sub(/^[^<]*</, "", inc); sub(/>.*/, "", inc)
			for (h in owners) if (index(inc, h) == 1 && !index(owners[h], " " FILENAME " "))
				print FILENAME ": <" inc "> belongs to" owners[h] "only"
		}' "$here/foreign.txt"
}

headers() {
	local f
	grep '\.h$' "$scratch/sources" | while read -r f; do
		gcc -std=gnu11 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only -x c "$f" 2>"$scratch/err" ||
			sed "s|^|$f alone: |" "$scratch/err" | head -n 3
	done
}

guards() {
	grep '\.h$' "$scratch/ours" >"$scratch/headers"
	each headers awk '
		function tell() { if (want && got != want) print f ": guard is not " want }
		FNR == 1 { tell(); f = FILENAME; n = split(f, t, "/"); want = toupper("AQE_" t[n - 1] "_" t[n]); gsub(/[-.]/, "_", want); got = "" }
		$1 == "#ifndef" && !got { got = $2 }
		END { tell() }'
}

# Functions carry the prefix in small letters, const tables in capitals.
symbols() {
	sed -n "s|^\(.*\)\.c\$|$build/\1.o|p" "$scratch/ours" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done >"$scratch/objects"
	each objects nm -A -g --defined-only | awk -v build="$build/" "$FOLDER"'
		{ f = $1; sub(/:.*/, "", f); sub(build, "", f); p = prefix[folder(f)] }
		index(tolower($3), p) != 1 && $3 != "main" && $3 != "HARDENING_PROFILE" { print f ": " $3 " lacks the prefix " p }' \
		"$here/layers.txt" -
}

# Comments and strings are not code.
banned() {
	grep '\.c$' "$scratch/ours" | while read -r f; do
		printf '# 1 "%s"\n' "$f"
		cat "$f"
	done | gcc -fpreprocessed -dD -E -x c - 2>&1 | sed -E 's/^# [0-9]+ ("[^"]*").*/@ \1/; /^@/!s/"([^"\\]|\\.)*"/""/g' | awk '
		FNR == NR { if ($0 !~ /^#/) { split($0, t, "\t"); where[t[1]] = t[2] } next }
		/^@ / { f = substr($2, 2, length($2) - 2); next }
		{
			line = $0
			while (match(line, /[A-Za-z_0-9]+[ \t]*\(/)) {
				name = substr(line, RSTART, RLENGTH); sub(/[ \t]*\($/, "", name)
				before = RSTART > 1 ? substr(line, RSTART - 1, 1) : " "
				if (name in where && before != "." && before != ">" &&
				    (where[name] == "-" || index(f, where[name]) != 1 || index(f, "shim/core/") == 1))
					print f ": " name "() is banned here"
				line = substr(line, RSTART + RLENGTH)
			}
		}' "$here/banned.txt" - | sort -u
}

lengths() {
	each sources awk 'function tell() { limit = f ~ /\.h$/ ? 150 : 800; if (n > limit) print f ": " n " lines, limit " limit }
		FNR == 1 { tell(); f = FILENAME } { n = FNR } END { tell() }'
}

# From the line of a function's opening brace (column 1, Linux style) to its closing one.
functions() {
	grep '\.c$' "$scratch/ours" >"$scratch/code"
	each code awk '
		/^{/ { start = FNR }
		/^}$/ { if (start && FNR - start + 1 > 62) printf "%s:%d: function of %d lines, limit 60\n", FILENAME, start, FNR - start - 1; start = 0 }'
}

spdx() {
	{ cat "$scratch/sources" "$scratch/scripts"; echo Makefile; } >"$scratch/licensed"
	each licensed awk '
		FNR == 1 { if (f && !ok) print f ": no SPDX line at the top"; f = FILENAME; ok = 0 }
		FNR <= 2 && /SPDX-License-Identifier: MIT/ { ok = 1 }
		END { if (f && !ok) print f ": no SPDX line at the top" }'
}

width() {
	each ours awk '{ line = $0; gsub(/\t/, "        ", line); if (length(line) > 100) printf "%s:%d: %d columns\n", FILENAME, FNR, length(line) }'
}

format() { each sources clang-format --dry-run 2>&1 | grep -E 'warning|error' | head -n 20; }
spelling() {
	grep -vE '^tests/(corpus|data|fuzz/corpus|golden|samples|fixtures|vectors)/' "$scratch/all" >"$scratch/texts"
	each texts codespell --ignore-words "$here/spelling.txt" 2>&1
}
# Unquoted words are meant as words in these; the rest of shellcheck holds.
shell() { each scripts shellcheck -x -P SCRIPTDIR -e SC2009,SC2086,SC2046,SC2016,SC2030,SC2031,SC2317 2>&1 | head -n 60; }
local_paths() { grep -v '^tests/lint/lint.sh$' "$scratch/all" >"$scratch/rest" && each rest grep -nIE '/(farm/in|work/(main|wt|shared|steering|\.library|\.mirror))' | head; }
toplevel() {
	cut -d/ -f1 "$scratch/all" | sort -u |
		grep -vxE '\..*|Makefile|README\.md|LICENSE|shim|oci|hardening|netpolicy|cache|audit|hooks|tests' |
		sed "s/.*/top level has '&'/"
}

run() {
	local name=$1 out started=$SECONDS
	out=$("$2")
	[ -z "${AQE_LINT_TIMES-}" ] || echo "# $name: $((SECONDS - started)) s"
	if [ -z "$out" ]; then
		echo "ok lint $name"
		pass=$((pass + 1))
	else
		echo "not ok lint $name"
		printf '    %s\n' "${out//$'\n'/$'\n    '}"
		fail=$((fail + 1))
	fi
}

run "layers" layers
run "third-party headers" foreign
run "headers compile alone" headers
run "header guards" guards
run "symbol prefixes" symbols
run "banned functions" banned
run "file length" lengths
run "function length" functions
run "line width" width
run "licence lines" spdx
run "format" format
run "spelling" spelling
run "shell" shell
run "paths of one machine" local_paths
run "top level" toplevel
echo "lint: $pass passed, $fail failed"
[ "$fail" = 0 ]
