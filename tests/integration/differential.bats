#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154,SC2030,SC2031
# What the rewrite accepts loads and runs in crun and in runc: every config.json sample of real
# engines and every conforming document of the corpus, rewritten by `aqe-shim harden`. Only paths of
# the machine the document was made on are replaced.
#
#     tests/setup/sandbox.sh bats tests/integration/differential.bats

bats_require_minimum_version 1.5.0

readonly POLICY=tests/corpus/policy.json
readonly INFO=tests/corpus/inspect/info-docker-userns.json
readonly STATUS=7

setup_file() {
	[ -n "${AQE_SANDBOX-}" ] || {
		echo "run this in tests/setup/sandbox.sh" >&2
		return 1
	}
	export AQE_SHIM=${AQE_SHIM-build/release/aqe-shim} W=$AQE_TMP/differential
	mkdir -p "$W"/{state,docs,seen,dir,rootfs/bin}
	cp /bin/busybox "$W/rootfs/bin/sh"
	: >"$W/file"
	mkfifo "$W/in"
	DIGEST=$(jq -r '.images[0].digest' "$POLICY")
	local f
	for f in tests/samples/*.json tests/corpus/spec/ok-*.json; do
		harden "$f"
	done
}

teardown_file() {
	[ -z "${W-}" ] || rm -rf "$W"
}

# Leaves the rewritten document in docs/, adapted, if the rewrite accepts it. The samples' image has
# a VOLUME, which is refused: taken out first.
harden() {
	local name key
	name=$(basename "$1" .json)
	jq 'if .mounts then .mounts |= map(select((.source // "") | endswith("/_data") | not)) else . end' \
		"$1" >"$W/in.json"
	"$AQE_SHIM" harden --policy "$POLICY" --engine-info "$INFO" --image-digest "$DIGEST" \
		--format document "$W/in.json" >"$W/out.json" 2>"$W/err" || return 0
	jq --arg w "$W" --arg id "$name" --argjson status "$STATUS" '
		def file: startswith("/etc/") or startswith("/sbin/") or endswith("/.containerenv") or
			startswith("/run/secrets/") or . == "/run/podman-init";
		.root.path = $w + "/rootfs" | .process.terminal = false | del(.process.consoleSize)
		| .process.args = ["/bin/sh", "-c", "exit \($status)"]
		| .linux.cgroupsPath = "/aqe-differential/" + $id
		| (.mounts[] | select(.type == "bind")) |=
			(.source = $w + (if .destination | file then "/file" else "/dir" end))
	' "$W/out.json" >"$W/doc.json"
	echo "$name" >>"$W/accepted"
	# many samples differ in names only: one of each kind is enough
	key=$(jq -S 'del(.hostname, .annotations, .linux.cgroupsPath, .process.env)' "$W/doc.json" | sha256sum)
	[ ! -e "$W/seen/${key%% *}" ] || return 0
	touch "$W/seen/${key%% *}"
	mv "$W/doc.json" "$W/docs/$name.json"
	make_places "$W/docs/$name.json"
}

# Mount points and the working directory: root of a user namespace cannot make them in our root.
make_places() {
	local type path
	while read -r type path; do
		if [ "$type" = file ]; then
			mkdir -p "$W/rootfs$(dirname "$path")"
			[ -e "$W/rootfs$path" ] || : >"$W/rootfs$path"
		else
			mkdir -p "$W/rootfs$path"
		fi
	done < <(jq -r '(.mounts[] | (if .source | endswith("/file") then "file" else "dir" end) + " " +
		.destination), "dir " + .process.cwd' "$1")
}

# Runs every document with $1; prints those that do not end as they should. /dev/null stays closed
# to crun, which gives it away in a user namespace.
run_all() {
	local low=$1 f name rc
	for f in "$W"/docs/*.json; do
		name=$(basename "$f" .json)
		mkdir -p "$W/bundle"
		cp "$f" "$W/bundle/config.json"
		rc=0
		timeout -k 5 10 "$low" --root "$W/state" run --bundle "$W/bundle" "d-$name" \
			>"$W/log" 2>&1 <>"$W/in" || rc=$?
		[ "$rc" = "$STATUS" ] || {
			echo "$name: status $rc: $(tail -n 2 "$W/log" | tr '\n' ' ')"
			"$low" --root "$W/state" delete --force "d-$name" >"$W/log" 2>&1 || :
		}
	done
}

@test "the rewrite accepts what it should" {
	local n
	n=$(wc -l <"$W/accepted")
	set -- "$W"/docs/*.json
	echo "$n documents, $# kinds"
	[ "$n" -ge 60 ]
	[ "$#" -ge 20 ]
}

@test "crun runs every accepted document" {
	run -0 run_all /usr/bin/crun
	echo "$output"
	[ -z "$output" ]
}

@test "runc runs every accepted document" {
	run -0 run_all /usr/sbin/runc
	echo "$output"
	[ -z "$output" ]
}
