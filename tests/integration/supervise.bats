#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# aqe supervise without an engine: processes and bundles of a real runtime. The schedule is read from
# its own events: what it waited lies in the window, and it waited that long.

bats_require_minimum_version 1.5.0
load env
load bundle

AQE=$(dirname "$AQE_SHIM")/aqe

setup_file() {
	low_setup
	export SHIM
}
setup() {
	DATA=$(mktemp -d "$AQE_TMP/supervise.XXXXXX")
	EVENTS=$DATA/events
}
teardown() {
	low_policy
	low_sweep
	rm -rf "$DATA"
}

sv() { timeout --foreground -k 5 120 "$AQE" supervise --data-dir "$DATA/data" --events "$EVENTS" "$@" <"$AQE_TMP/low/stdin"; }
# For the background: no shell in between that signals would go to.
sv_bg() {
	"$AQE" supervise --data-dir "$DATA/data" --events "$EVENTS" "$@" <"$AQE_TMP/low/stdin" >"$DATA/out" 2>&1 &
	SV=$!
}
sv_ends() { # STATUS
	local rc=0
	wait $SV || rc=$?
	[ "$rc" = "$1" ] || {
		echo "wanted exit status $1, got $rc"
		cat "$DATA/out"
		return 1
	}
}
names() { jq -r .event "$EVENTS" | tr '\n' ' '; }
has_event() { grep -q "\"event\":\"$1\"" "$EVENTS"; }
status_of() { "$AQE" supervise status --data-dir "$DATA/data" --format json "$1" | jq -r '.ids[0] | "\(.state) \(.failures)"'; }

# What the audit log says of an id: action and reason, with a status where there is one.
rows_of() { "$AQE" audit list --format jsonl --container "$1" | jq -r '"\(.action) \(.reason) \(.status // "")"' | sed 's/ $//'; }

# Every delay lies in its window, and no start came before its delay was over.
assert_schedule() {
	jq -es '
		def ms: (.time | (sub("\\.[0-9]+Z$"; "Z") | fromdate) * 1000 + (capture("\\.(?<f>[0-9]+)Z$").f | tonumber));
		([.[] | select(.event == "backoff") | .failures] == [1, 2, 3, 4]) and
		all(.[] | select(.event == "backoff"); .delay_ms >= 0 and .delay_ms <= 500 * pow(2; .failures - 1)) and
		. as $all | all(range(length) | select($all[.].event == "backoff");
			. as $i | ([$all[$i:][] | select(.event == "started" or .event == "failed")][0] | ms) - ($all[$i] | ms) >= $all[$i].delay_ms - 1)
	' "$EVENTS" >/dev/null || {
		echo "not the schedule:"
		cat "$EVENTS"
		return 1
	}
}

@test "process: five failures hold it, across calls; reset lets go" {
	run sv --id p -- sh -c 'exit 3'
	assert_status 1
	assert_has AGENTOS_CRASH_LOOP
	[ "$(jq -r '.event + " " + ((.exit_code // .failures // "") | tostring)' "$EVENTS" | grep -v '^alive')" = "$(
		for n in 1 2 3 4; do printf 'started \nended 3\nfailed %s\nbackoff %s\n' $n $n; done
		printf 'started \nended 3\nfailed 5\nheld 5\n'
	)" ]
	assert_schedule
	jq -es 'last | .retryable == true and .code == "AGENTOS_CRASH_LOOP"' "$EVENTS"
	[ "$(status_of p)" = "held 5" ]
	run sv --id p -- sh -c "touch $DATA/ran"
	assert_status 1
	[ ! -e "$DATA/ran" ]
	"$AQE" supervise reset --data-dir "$DATA/data" p
	[ "$(status_of p)" = "stopped 0" ]
	[ "$(rows_of p)" = "$(
		for n in 1 2 3 4 5; do printf 'allowed started\nallowed ended 3\n'; done
		# held, and still held at the next call
		printf 'refused AGENTOS_CRASH_LOOP\nrefused AGENTOS_CRASH_LOOP\nchanged reset\n'
	)" ] || {
		rows_of p
		return 1
	}
	run sv --id p -- sh -c "touch $DATA/ran"
	assert_status 0
	[ -e "$DATA/ran" ]
}

@test "process: signals, grace, two supervisors of one id" {
	sv_bg --id s --grace 1 -- sh -c 'trap "echo usr1" USR1; trap "" TERM; echo ready; while :; do sleep 0.1; done'
	wait_for grep -q ready "$DATA/out"
	kill -USR1 $SV
	wait_for grep -q usr1 "$DATA/out"
	run sv --id s -- true
	assert_status 1
	assert_has "is supervised already"
	[ "$(status_of s)" = "running 0" ]
	kill -TERM $SV
	sv_ends 0
	[ "$(jq -r 'select(.event == "ended") | .signal' "$EVENTS")" = 9 ] # TERM was not enough
	[ "$(status_of s)" = "stopped 0" ]
}

@test "process: a reset while it waits; a second signal does without the grace" {
	sv_bg --id w --grace 3600 -- sh -c "[ -e $DATA/go ] || exit 1; trap '' TERM; echo ready; while :; do sleep 0.1; done"
	wait_for has_event failed
	touch "$DATA/go"
	"$AQE" supervise reset --data-dir "$DATA/data" w
	wait_for grep -q ready "$DATA/out"
	has_event reset
	kill -TERM $SV
	kill -TERM $SV 2>/dev/null || :
	# the two may be taken as one
	stopped_now() { kill -TERM $SV 2>/dev/null || return 0; [ ! -e /proc/$SV ]; }
	wait_for stopped_now
}

@test "process: rows of the audit log go where the policy says, and nowhere when it says off" {
	low_policy jq=".audit = {path: \"$DATA/log\"}"
	run sv --id q -- true
	assert_status 0
	[ "$(rows_of q | tr '\n' ' ')" = "allowed started allowed ended 0 allowed stopped " ]
	[ -e "$DATA/log/audit.db" ]
	# a log that takes no rows is told, once, and stops nothing
	rm -r "$DATA/log"
	: >"$DATA/log"
	run sv --id q -- true
	assert_status 0
	[ "$(grep -c 'not recorded' <<<"$output")" = 1 ]
	rm "$DATA/log"
	low_policy jq=".audit = {mode: \"off\", path: \"$DATA/log\"}"
	run sv --id q -- true
	assert_status 0
	refute_has "not recorded"
	[ ! -e "$DATA/log" ]
}

@test "process: wrong words" {
	run sv
	assert_status 2
	run sv --engine lxc x
	assert_status 2
	run sv --restart never -- true
	assert_status 2
	run sv --timeout 0 -- true
	assert_status 2
	run sv --id ../x -- true
	assert_status 2
	run sv -- no-such-command
	assert_status 1
	assert_has "not found"
	: >"$DATA/plain"
	run sv -- "$DATA/plain"
	assert_status 1
	assert_has "command '$DATA/plain': Permission denied"
	run env DOCKER_HOST=unix:///no/such "$AQE" supervise --data-dir "$DATA/data" --engine docker x
	assert_status 1
	assert_has docker
	run "$AQE" supervise status --data-dir "$DATA/data" nobody
	assert_status 1
}

@test "process: a runtime that hangs is timed out, and its call ended" {
	printf '#!/bin/sh\nexec sleep 86399\n' >"$DATA/hangs"
	chmod 755 "$DATA/hangs"
	run sv --bundle "$DATA" --runtime "$DATA/hangs" --timeout 1 --grace 0 h
	assert_status 1
	assert_has start_timeout
	[ "$(jq -r 'select(.event == "failed") | .failures' "$EVENTS" | tr '\n' ' ')" = "1 2 3 4 5 " ]
	run jq -r 'select(.event == "started")' "$EVENTS"
	[ -z "$output" ]
	[ "$(status_of h)" = "held 5" ]
	no_sleeper() { ! pgrep -f 'sleep 86399'; }
	wait_for no_sleeper
}

@test "bundle: a crash loop of a real container" {
	local b
	b=$(make_bundle sv-loop '.process.args = ["sh", "-c", "exit 3"]')
	run sv --bundle "$b" --runtime "$SHIM" --root "/run/low-$AQE_LOW" sv-loop
	assert_status 1
	[ "$(jq -r 'select(.event == "started" or .event == "ended") | .event + " " + ((.exit_code // "") | tostring)' "$EVENTS")" = "$(
		for n in 1 2 3 4 5; do printf 'started \nended 3\n'; done
	)" ] || {
		cat "$EVENTS"
		return 1
	}
	assert_schedule
	assert_has AGENTOS_CRASH_LOOP
	run low state sv-loop
	assert_status 1
}

@test "bundle: SIGKILL of the supervisor loses nothing" {
	local b pid
	b=$(make_bundle sv-kept '.process.args = ["sleep", "1000"]')
	sv_bg --bundle "$b" --runtime "$SHIM" --root "/run/low-$AQE_LOW" --grace 1 sv-kept
	wait_for has_event alive
	pid=$(jq -r 'select(.event == "started") | .pid' "$EVENTS")
	kill -KILL $SV
	sv_ends 137
	[ -e "/proc/$pid" ]
	[ "$(status_of sv-kept)" = "unsupervised 0" ]
	sv_bg --bundle "$b" --runtime "$SHIM" --root "/run/low-$AQE_LOW" --grace 1 sv-kept
	wait_for has_event adopted
	[ "$(jq -r 'select(.event == "adopted") | .pid' "$EVENTS")" = "$pid" ]
	kill -TERM $SV
	sv_ends 0
	[ "$(grep -c '"event":"started"' "$EVENTS")" = 1 ]
	run low state sv-kept
	assert_status 1
}

@test "bundle: what the policy refuses is not tried again" {
	local b
	b=$(make_bundle sv-no '.linux.devices = [{path: "/dev/mem", type: "c", major: 1, minor: 1}]')
	run sv --bundle "$b" --runtime "$SHIM" --root "/run/low-$AQE_LOW" sv-no
	assert_status 1
	assert_has "refused: devices"
	[ "$(names)" = "refused " ]
	jq -es 'last.retryable == false' "$EVENTS"
	[ "$(status_of sv-no)" = "refused 0" ]
}
