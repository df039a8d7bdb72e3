#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# aqe sandbox without an engine: the whole life, a crash loop, a monitor that is killed, limits.

bats_require_minimum_version 1.5.0
load env
load bundle

AQE=$(dirname "$AQE_SHIM")/aqe
sb() { timeout --foreground -k 5 60 "$AQE" sandbox "$@" <"$AQE_TMP/low/stdin"; }

# The test image as an OCI layout; prints the digest of its config.
make_layout() {
	local d=$AQE_TMP/layout b=$AQE_TMP/layout/blobs/sha256 layer config manifest
	mkdir -p "$b"
	make_archives
	layer=$(sha256sum "$AQE_TMP/bb.tar" | cut -d' ' -f1)
	cp "$AQE_TMP/bb.tar" "$b/$layer"
	jq -nc --arg l "sha256:$layer" '{architecture: "amd64", os: "linux", config: {Cmd: ["sleep", "1000"]},
		rootfs: {type: "layers", diff_ids: [$l]}}' >"$d/c"
	config=$(sha256sum "$d/c" | cut -d' ' -f1)
	mv "$d/c" "$b/$config"
	jq -nc --arg c "sha256:$config" --arg l "sha256:$layer" '{schemaVersion: 2, config: {digest: $c},
		layers: [{mediaType: "application/vnd.oci.image.layer.v1.tar", digest: $l}]}' >"$d/m"
	manifest=$(sha256sum "$d/m" | cut -d' ' -f1)
	mv "$d/m" "$b/$manifest"
	echo '{"imageLayoutVersion": "1.0.0"}' >"$d/oci-layout"
	jq -nc --arg m "sha256:$manifest" '{manifests: [{digest: $m}]}' >"$d/index.json"
	echo "sha256:$config"
}

setup_file() {
	low_setup
	# of this file's run with another low-level runtime
	find /var/lib/aqe-shim -name 'events.jsonl*' -delete 2>/dev/null || :
	make_layout >>"$AQE_TMP/pinned"
	own_policy
}
teardown() {
	sb destroy-all >/dev/null
	own_policy
}
own_policy() { write_policy jq='.images[].types = ["default", "qe-test-writer"]'; }

@test "run, list, logs, exec, health, stop, rm" {
	sb run -d --type qe-test-writer --id one --image "oci:$AQE_TMP/layout" -- sh -c 'echo "hi $AGENT_ID $AGENT_TYPE"; exec sleep 1000'
	run sb list
	assert_match "agentic-qe-qe-test-writer-one .* running "
	run sb logs one
	assert_line "hi one qe-test-writer"
	run sb exec one -- sh -c 'id -u; exit 5'
	assert_status 5
	assert_line 1000
	run sb health one
	assert_status 0
	sb stop -f one
	run sb rm one
	assert_status 0
	run sb rm one
	assert_status 1
	assert_has "not found"
}

@test "output that is lost ends logs -f, and neither run nor its exit status" {
	run bash -c "'$AQE' sandbox run --id full --image 'oci:$AQE_TMP/layout' -- sh -c 'echo hi; sleep 1; echo ho; exit 7' \
		2>&1 >/dev/full <'$AQE_TMP/low/stdin'"
	assert_status 7
	assert_has "aqe sandbox: write to standard output: "
	sb run -d --id says --image "oci:$AQE_TMP/layout" -- sh -c 'trap "exit 0" TERM; while :; do echo hi; sleep 0.1; done'
	run bash -c "timeout -k 5 30 '$AQE' sandbox logs -f says 2>&1 >/dev/full"
	assert_status 1
	assert_has "aqe sandbox: write to standard output: "
}

# Rows that say so of the sandbox "loop".
resets() {
	"$AQE" audit list --kind system --container agentic-qe-default-loop --format jsonl |
		jq -r 'select(.reason == "reset" and .action == "changed").seq' | wc -l
}

@test "a crash loop holds at the fifth failure, reset lets go" {
	local before
	sb run -d --id loop --image "oci:$AQE_TMP/layout" -- sh -c 'exit 3' # it may have ended before anybody looks
	wait_for bash -c "'$AQE' sandbox list | grep -q ' held '"
	run sb events --sandbox agentic-qe-default-loop
	# each start once, in the file before its end; the hold comes last
	[ "$(jq -r '.event + " " + ((.start // .exit_code // .reason) | tostring)' <<<"$output" | cut -d' ' -f1,2)" = "$(
		echo "created null"
		printf 'started %s\nstopped 3\n' 1 2 3 4 5
		echo "error AGENTOS_CRASH_LOOP"
	)" ] || {
		show_output
		return 1
	}
	run sb start loop
	assert_status 1
	assert_has "is held"
	before=$(resets) # this file runs with each low-level runtime
	run sb reset loop
	assert_status 0
	[ "$(resets)" = "$((before + 1))" ]
}

@test "SIGKILL of the monitor loses nothing" {
	local pid
	sb run -d --id kept --image "oci:$AQE_TMP/layout"
	pid=$(sb inspect kept | jq '.[0].state.pid')
	kill -9 "$(ps -eo pid=,args= | awk '/sandbox monitor agentic-qe-default-kept/ && !/awk/ { print $1; exit }')"
	run sb list
	assert_match "agentic-qe-default-kept .* running "
	[ "$(sb inspect kept | jq '.[0].state.pid')" = "$pid" ]
}

# Whatever is left of a sandbox whose id begins with "slain".
slain_leaks() {
	find /var/lib/aqe-shim /run/aqe-shim /run/crun /run/runc -name '*slain*' 2>/dev/null | sed 's/^/file: /'
	find /var/lib/aqe-shim/supervisor -mindepth 1 -name '.*' ! -name .lock | sed 's/^/file: /'
	ps -eo pid=,args= | awk '/slain|sleep 86397/ && !/awk|timeout/ { print "process: " $0 }'
	find /sys/fs/cgroup -mindepth 2 -type d -name '*slain*' 2>/dev/null | sed 's/^/cgroup: /'
	grep slain /proc/self/mountinfo | sed 's/^/mount: /'
}
slain_clean() { [ -z "$(slain_leaks)" ]; }
slay() { ps -eo pid=,args= | awk -v what="$1" '$0 ~ what && /slain/ && !/awk|sh -c|timeout/ { print $1 }' | xargs -r kill -KILL 2>/dev/null || :; }

@test "SIGKILL of command and monitor at any moment of a start: list and rm find all of it" {
	local n us t0 t1 name
	t0=$(date +%s%N)
	sb run -d --id slain-0 --image "oci:$AQE_TMP/layout" -- sleep 86397
	t1=$(date +%s%N)
	sb rm -f slain-0
	for n in $(seq "${AQE_KILL_ROUNDS:-8}"); do
		us=$((RANDOM * 32768 + RANDOM))
		us=$((us % ((t1 - t0) / 800)))
		"$AQE" sandbox run -d --id "slain-$n" --image "oci:$AQE_TMP/layout" -- sleep 86397 >"$AQE_TMP/low/output" 2>&1 <"$AQE_TMP/low/stdin" 3>&- &
		python3 -c 'import sys, time; time.sleep(int(sys.argv[1]) / 1e6)' "$us"
		# every other time its calls of the runtime, too
		if [ $((n % 2)) = 0 ]; then slay "sandbox (run|monitor)"; else slay .; fi
		wait $! || :
		run sb list
		assert_status 0
		name=$(grep -o 'agentic-qe-default-slain[^ ]*' <<<"$output" || :)
		run sb rm -f "${name:-slain-$n}"
		if [ -n "$name" ]; then
			assert_status 0 || {
				echo "round $n, killed after $us us"
				tail -n 20 "/var/lib/aqe-shim/sandboxes/$name"/{state.json,want.json,begun.json,monitor.log,runtime.log} "/var/lib/aqe-shim/supervisor/$name.json"
				slain_leaks
				return 1
			}
		else
			assert_has "not found"
		fi
		wait_for slain_clean || {
			echo "round $n, killed after $us us of $(((t1 - t0) / 1000)), name '$name':"
			slain_leaks
			return 1
		}
	done
}

@test "a runtime that hangs is timed out, and its call ended" {
	printf '#!/bin/sh\n[ "$6" = create ] || [ "$5" = create ] || exec "%s" "$@"\nexec sleep 86398\n' "$AQE_SHIM" >"$AQE_TMP/hangs"
	chmod 755 "$AQE_TMP/hangs"
	AQE_SHIM=$AQE_TMP/hangs run sb run --restart no --start-timeout 1s --id hung --image "oci:$AQE_TMP/layout"
	assert_status 1
	run sb events --sandbox agentic-qe-default-hung
	assert_has '"reason":"start_timeout"'
	refute_has '"event":"started"'
	no_sleeper() { ! pgrep -f 'sleep 86398'; }
	wait_for no_sleeper
}

@test "a memory hog is recorded as an OOM kill" {
	run sb run --id hog --memory 64m --image "oci:$AQE_TMP/layout" -- dd if=/dev/zero of=/dev/null bs=200M count=1
	assert_status 137
	run sb events --sandbox agentic-qe-default-hog
	assert_has '"event":"oom_killed"'
}

@test "every violation of the type is listed; an engine that is not there is named" {
	run sb create --type qe-test-writer --image x --cpus 4 --network host --read-only=false
	assert_status 1
	assert_has "3 violations"
	run env DOCKER_HOST=unix:///no/such "$AQE" sandbox create --engine docker --image x
	assert_status 1
	assert_has docker
}

@test "--rootfs: a folder of the user's own runs as hardened as an image, and stays as it is" {
	local root=/srv/aqe-root before pid
	low_policy # a folder is no image that could be pinned
	rm -rf "$root"
	cp -a "$AQE_TMP/rootfs" "$root"
	before=$(find "$root" -printf '%p %m %U %T@\n' | sort)
	run sb run --engine oci --rootfs "$root/../aqe-root" --id probe -- probe
	assert_status 0
	assert_line "CapBnd: 0000000000000000"
	assert_line "NoNewPrivs: 1"
	assert_line "Seccomp: 2"
	assert_line "uid_map: 0 100000 65536;"
	assert_line "ifaces:lo "
	assert_line rootfs=readonly
	assert_line tmp=writable
	assert_match '^mount / root ro,nosuid,nodev'
	# it can be started again, and entered; the host never sees the mount
	sb run -d --rootfs "$root" --id again -- sleep 1000
	sb stop -f again
	sb start again
	[ "$(sb exec again -- id -u)" = 1000 ]
	pid=$(sb inspect again | jq '.[0].state.pid')
	grep -q " $root / " "/proc/$pid/mountinfo"
	[ "$(grep -c "$root" /proc/self/mountinfo || :)" = 0 ]
	sb rm -f again
	[ ! -e "/proc/$pid" ]
	sb rm probe
	[ -z "$(ls -A /var/lib/aqe-shim/roots)" ]
	[ "$(find "$root" -printf '%p %m %U %T@\n' | sort)" = "$before" ]
}

@test "--rootfs: what could be exchanged, or shows more than a root, is refused; what changed since too" {
	local root=/srv/aqe-root
	rm -rf "$root"
	cp -a "$AQE_TMP/rootfs" "$root"
	run sb create --image x --rootfs "$root" -- true
	assert_status 2
	assert_has "exclude each other"
	run sb create --rootfs / -- true
	assert_status 1
	assert_has "the root of the host"
	chmod 777 "$root"
	run sb create --rootfs "$root" -- true
	assert_status 1
	assert_has "others than its owner may write"
	chmod 755 "$root"
	low_policy jq='.mounts = [{source: "/srv", destination: "/workspace"}]'
	run sb create --rootfs "$root" -- true
	assert_status 1
	assert_has "a mount of the policy"
	low_policy
	sb create --rootfs "$root" --id late -- true
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$root/run/engine.sock"
	run sb start late
	assert_status 1
	assert_has "a socket: 'run/engine.sock'"
	# a folder is no pinned image: without a waiver the policy says no
	rm "$root/run/engine.sock"
	own_policy
	run sb run --rootfs "$root" --id unpinned -- true
	assert_status 1
	assert_has "refused: digest"
	rm -rf "$root"
}

# The original's own assertions (SB-01 to SB-14), in our terms; those on plans, sizes and types are
# in test_sandbox_plan.c and test_sandbox_size.c.
@test "SB-01 to SB-14" {
	for _ in 1 2; do # SB-01, SB-03
		[ "$(sb list --format json | jq length)" = 0 ]
	done
	run env DOCKER_HOST=unix:///no/such "$AQE" sandbox create --engine docker --image x # SB-02: it is asked, not assumed
	assert_status 1
	sb run -d --type qe-test-writer --id first --memory 512m --image "oci:$AQE_TMP/layout" # SB-04, SB-05, SB-07
	run sb inspect first # SB-11
	assert_status 0
	[ "$(jq -r '.[0] | "\(.plan.agent_id) \(.plan.agent_type) \(.status) \(.plan.memory) \(.plan.cpus_milli)"' <<<"$output")" = \
		"first qe-test-writer running 536870912 $(sb types --format json | jq '.[] | select(.type == "qe-test-writer") | .cpus_milli')" ] # SB-06
	sb run -d --id second --image "oci:$AQE_TMP/layout"
	[ "$(sb list --format json | jq length)" = 2 ] # SB-10
	run sb inspect nobody # SB-12
	assert_status 1
	run sb health first # SB-13
	assert_status 0
	run sb events --sandbox agentic-qe-qe-test-writer-first # SB-14
	[ "$(jq -r .event <<<"$output" | tr '\n' ' ')" = "created started " ]
	run sb rm -f first # SB-08
	assert_status 0
	run sb rm -f first # SB-09
	assert_status 1
	assert_has "not found"
}
