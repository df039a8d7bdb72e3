#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The audit log under calls without an engine: faults between a row and what it records, many starts
# at once, a corrupt or locked database, SIGKILL, observe mode, other folders, the number of flushes.

bats_require_minimum_version 1.5.0
load env
load bundle

LOG=/var/lib/aqe-shim/audit

setup_file() {
	low_setup
	install -m 755 "$(dirname "$AQE_SHIM")/aqe" "$AQE_TMP/bin/aqe"
	export SHIM
}
setup() {
	rm -rf "$LOG" /run/aqe-shim/.audit /run/aqe-shim/.policy /run/aqe-shim/audit-lost.*
	low_policy
}
teardown() {
	low_sweep
	while mountpoint -q "$LOG"; do umount "$LOG"; done
	assert_low_clean
}

# Fails when the command succeeds (bats takes no notice of a plain `!`).
lacks() {
	if "$@"; then
		echo "unexpected: $*"
		return 1
	fi
}
cli() { "$AQE_TMP/bin/aqe" "$@"; }
rows() { cli audit list --since all --format jsonl "$@"; }
kinds_of() { rows --container "$1" | jq -rs '[.[] | select(.kind != "waiver") | .kind] | join(" ")'; }
verifies() {
	run cli audit verify
	assert_status 0
}
sleeper() { make_bundle "$1" '.process.args = ["sleep", "1000"]'; }

# refused VERB-WORDS...: and the reason is the log
refused() {
	run to_file low "$@"
	assert_status 1
	assert_has "refused: "
	assert_has "not recorded: audit log"
}

@test "start is refused, the container is gone, the id can be used again" {
	local dir
	dir=$(sleeper st)
	low_create "$dir" low-st
	mv "$LOG" "$LOG.away"
	echo file >"$LOG"
	refused start low-st
	[ ! -e "/run/low-$AQE_LOW/low-st" ]
	assert_low_clean
	rm "$LOG"
	mv "$LOG.away" "$LOG"
	run low_cycle "$(make_bundle st)" low-st
	assert_status 0
	[ "$(kinds_of low-st)" = "start stop" ]
	[ "$(rows --kind system | jq -r .meta.lost)" = 1 ]
	verifies
}

@test "exec and update are refused and have no effect; kill, delete and state go on" {
	local dir before
	dir=$(sleeper st)
	low_create "$dir" low-st
	low start low-st
	before=$(cgroup_value "$(cat "$dir/pid")" pids pids.max)
	chmod 755 "$LOG"
	refused exec low-st /bin/busybox touch /tmp/was-here
	refused update --pids-limit 77 low-st
	[ "$(cgroup_value "$(cat "$dir/pid")" pids pids.max)" = "$before" ]
	[ -z "$(find /run/aqe-shim -name 'exec-*' -o -name 'update-*')" ]
	run low state low-st
	assert_status 0
	run low kill low-st KILL
	assert_status 0
	wait_for stopped low-st
	run low delete low-st
	assert_status 0
	[ -z "$output" ]
	chmod 700 "$LOG"
	run low_cycle "$(make_bundle st)" low-st
	assert_status 0
	[ "$(rows --kind system | jq -s 'map(.meta.lost) | add')" -ge 2 ]
	verifies
}

@test "a database that is no database, or another's, or damaged inside: refused" {
	local dir=$LOG/audit.db what
	for what in junk other inside; do
		rm -rf "$LOG"
		run low_cycle "$(make_bundle st)" low-st
		assert_status 0
		cli audit stats >/dev/null
		case $what in
		junk) head -c 8192 /dev/urandom >"$dir" ;;
		other)
			rm -f "$dir"*
			python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute("create table t (a)"); d.commit()' "$dir"
			chmod 600 "$dir"
			;;
		inside) # rows may wait in the spool until somebody looks, no longer
			python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    for page in range(1, 12):
        f.seek(4096 * page); f.write(b"\xff" * 4096)' "$dir"
			rm -f "$dir-wal" "$dir-shm" "$LOG/spool"
			;;
		esac
		refused run --bundle "$(make_bundle st)" low-st
		assert_match 'audit log: .*(corrupt|not a database|another program|malformed)'
		assert_low_clean
	done
}

# CPU time of all children so far, in hundredths of a second.
children_ticks() { awk '{ print $16 + $17 }' "/proc/$$/stat"; }

@test "locked: bounded, without spinning; when nobody holds it there is no wait" {
	local t0 holder cpu ms
	run low_cycle "$(make_bundle st)" low-st
	assert_status 0
	rm "$LOG/spool" # so that the database itself is asked
	rm -f "$AQE_TMP/low/held" # of this file's run with another low-level runtime
	python3 -c 'import sqlite3, sys, time
d = sqlite3.connect(sys.argv[1], isolation_level=None); d.execute("begin immediate"); print("held", flush=True); time.sleep(60)' \
		"$LOG/audit.db" >"$AQE_TMP/low/held" 3>&- 4>&- &
	holder=$!
	wait_for grep -q held "$AQE_TMP/low/held"
	t0=$(date +%s%N)
	cpu=$(children_ticks)
	refused restore low-st
	ms=$((($(date +%s%N) - t0) / 1000000))
	assert_has "locked by another process for 2000 ms"
	[ "$ms" -ge 1900 ]
	[ "$ms" -lt 15000 ]
	[ $(($(children_ticks) - cpu)) -lt 100 ] # one second
	kill "$holder"
	wait "$holder" || :
	run low_cycle "$(make_bundle st)" low-st
	assert_status 0
	[ "$(rows --kind system | jq -r '.meta.why')" = locked ]
	verifies
}

@test "twenty starts at once: every one is there, the chain holds" {
	local i dirs=() pids=() rc=0
	for i in $(seq 20); do dirs+=("$(make_bundle "p$i" '.process.args = ["true"]')"); done
	for i in $(seq 20); do
		low run --bundle "${dirs[i - 1]}" "low-p$i" >"$AQE_TMP/low/out-$i" 2>&1 <"$AQE_TMP/low/stdin" 3>&- 4>&- &
		pids+=($!)
	done
	for i in $(seq 20); do wait "${pids[i - 1]}" || rc=$?; done
	[ "$rc" = 0 ] || cat "$AQE_TMP"/low/out-*
	[ "$rc" = 0 ]
	for i in $(seq 20); do [ "$(kinds_of "low-p$i")" = "start stop" ]; done
	[ "$(rows --kind policy | wc -l)" = 1 ]
	[ "$(rows --kind start | wc -l)" = 20 ]
	verifies
}

@test "killed between the row and its effect: what runs has its row, and the log goes on" {
	local dir us id n=0 running=0
	for us in 0 2000 5000 10000 15000 20000 30000 50000; do
		id=low-k$us
		dir=$(sleeper "k$us")
		low_create "$dir" "$id"
		"$SHIM" --root "/run/low-$AQE_LOW" start "$id" >"$AQE_TMP/low/output" 2>&1 <"$AQE_TMP/low/stdin" &
		local pid=$!
		python3 -c 'import sys, time; time.sleep(int(sys.argv[1]) / 1e6)' "$us"
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
		# the low-level runtime that it started may still be at work
		while [ -n "$(pgrep -f "start $id" || :)" ]; do sleep 0.02; done
		if [ "$(low_bare state "$id" | jq -r .status)" = running ]; then
			running=$((running + 1))
			[ -n "$(rows --kind start --container "$id")" ]
		fi
		low delete --force "$id"
		n=$((n + 1))
	done
	[ "$n" = 8 ]
	run low_cycle "$(make_bundle st)" low-st
	assert_status 0
	verifies
}

@test "observe: recorded, never refused; what would have been refused is named" {
	local dir
	low_policy mode=observe
	dir=$(make_bundle ob '.process.capabilities.bounding += ["CAP_SYS_ADMIN"] | .process.args = ["sleep", "1000"]')
	low_create "$dir" low-ob
	low start low-ob
	low exec low-ob /bin/busybox true
	low delete --force low-ob
	[ "$(kinds_of low-ob)" = "start start exec stop" ]
	run jq -r 'select(.method == "create") | .action, .meta.mode, .meta.would, (.meta.findings[] | .property)' <<<"$(rows --container low-ob)"
	assert_line allowed
	assert_line observe
	assert_line refuse
	assert_line capabilities
	# a log that takes nothing changes nothing
	chmod 755 "$LOG"
	run low_cycle "$(make_bundle ob)" low-ob
	assert_status 0
	chmod 700 "$LOG"
}

@test "another folder: later calls find it, also without policy and record" {
	local dir=$AQE_TMP/low/own-log
	rm -rf "$dir"
	low_policy jq=".audit = {path: \"$dir\"}"
	run low_cycle "$(make_bundle st)" low-st
	assert_status 0
	[ ! -e "$LOG" ]
	[ "$(kinds_of low-st)" = "start stop" ]
	low_create "$(sleeper st)" low-st
	mv "$POLICY" "$POLICY.away"
	run low start low-st
	assert_status 0
	run low exec low-st /bin/busybox true
	assert_status 0
	low delete --force low-st
	run low restore nowhere
	assert_status 1
	run low create --bundle "$(make_bundle st)" low-st
	assert_status 1
	mv "$POLICY.away" "$POLICY"
	[ ! -e "$LOG" ]
	[ "$(kinds_of low-st)" = "start stop start exec stop refusal" ]
	[ "$(rows --container nowhere | jq -r '.kind, .method' | xargs)" = "refusal restore" ]
}

@test "restore and checkpoint are refused with a row; an unknown option has one without its words" {
	local secret=s3cr3t-$RANDOM
	run low restore low-no
	assert_status 1
	run low checkpoint low-no
	assert_status 1
	run low exec "--$secret" low-no "$secret"
	assert_status 1
	run low kill low-no KILL
	[ "$(rows --kind refusal | jq -r .method | xargs)" = "restore checkpoint exec" ]
	lacks grep -raF "$secret" "$LOG"
}

traced() { strace -y -e trace=fsync,fdatasync,openat -o "$AQE_TMP/low/trace" "$SHIM" --root "/run/low-$AQE_LOW" "$@" <"$AQE_TMP/low/stdin"; }

@test "one flush for a start, none for a stop, no database for what only passes" {
	local dir
	dir=$(sleeper st)
	run low_cycle "$(make_bundle other)" low-other # the policy's row
	command -v strace >/dev/null || cannot_run "no strace"
	low_create "$dir" low-st
	traced start low-st
	[ "$(grep -cE "f(data)?sync\([0-9]+<$LOG" "$AQE_TMP/low/trace")" = 1 ]
	traced state low-st
	lacks grep -F "$LOG" "$AQE_TMP/low/trace"
	traced kill low-st KILL
	lacks grep -F "$LOG" "$AQE_TMP/low/trace"
	wait_for stopped low-st
	traced delete low-st
	lacks grep -E 'f(data)?sync\(' "$AQE_TMP/low/trace"
	grep -qF "$LOG" "$AQE_TMP/low/trace"
}
