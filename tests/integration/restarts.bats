#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# U47: crash loops under an engine: its own restart policy is delayed and held by the shim; aqe
# supervise (docker) does without one.

bats_require_minimum_version 1.5.0
load env

AQE=$(dirname "$AQE_SHIM")/aqe

setup_file() {
	engine_start
}
teardown() { engine_clean; }

id_of() { engine inspect --format '{{.Id}}' "$1"; }
counts() {
	case $AQE_ENGINE in
	podman-user) echo "/run/user/$AQE_UID/aqe-shim/.restarts" ;;
	*) echo /var/lib/aqe-shim/supervisor ;;
	esac
}
hold_of() { jq -r .hold "$(counts)/$1.json"; }
is_held() { [ "$(hold_of "$1")" = crash_loop ]; }
aqe() {
	case $AQE_ENGINE in
	podman-user) as_user "$AQE" "$@" ;;
	*) "$AQE" "$@" ;;
	esac
}

@test "U47: an engine's restart loop is held at the fifth short life, a reset lets go" {
	local id
	hard_run -d --name loop --restart always $IMG sh -c 'exit 3'
	id=$(id_of loop)
	WAIT_S=240 wait_for is_held "$id"
	[ "$(jq .failures "$(counts)/$id.json")" = 5 ]
	# held: a start by hand is refused, with the code and the way out
	engine stop -t 0 loop >/dev/null 2>&1 || :
	run engine start loop
	[ "$status" != 0 ]
	assert_has AGENTOS_CRASH_LOOP
	run aqe sandbox reset "${id:0:12}"
	assert_status 0
	[ ! -e "$(counts)/$id.json" ]
}

@test "docker: supervise: a container that crashes is started by the schedule and held; reset is a new chance" {
	local events=$AQE_TMP/supervise-events id
	rm -f "$events"
	shim create --name sv $IMG sh -c 'exit 3' >/dev/null
	run aqe supervise --engine docker --events "$events" sv
	assert_status 1
	assert_has AGENTOS_CRASH_LOOP
	[ "$(jq -r 'select(.event == "started" or .event == "ended") | .event' "$events" | tr '\n' ' ')" = \
		"started ended started ended started ended started ended started ended " ] || {
		cat "$events"
		return 1
	}
	jq -es 'all(.[] | select(.event == "backoff"); .delay_ms <= 500 * pow(2; .failures - 1))' "$events"
	id=$(id_of sv)
	is_held "$id"
	run aqe supervise reset sv
	assert_status 0
	[ ! -e "$(counts)/$id.json" ] # the shim's own
	[ "$(aqe supervise status --format json sv | jq .ids[0].failures)" = 0 ]
}

@test "docker: supervise: SIGTERM ends the container with the supervisor; one that is not there is named" {
	local events=$AQE_TMP/supervise-events pid
	rm -f "$events"
	run aqe supervise --engine docker nobody
	assert_status 1
	assert_has "no container 'nobody'"
	shim create --name stay $IMG sleep 1000 >/dev/null
	"$AQE" supervise --engine docker --grace 1 --events "$events" stay >/dev/null 2>&1 </dev/null 3>&- &
	pid=$!
	wait_for grep -q '"event":"alive"' "$events"
	[ "$(jq -r 'select(.event == "started") | .pid' "$events")" = "$(pid_of stay)" ]
	kill -TERM $pid
	wait $pid
	[ "$(engine inspect --format '{{.State.Running}}' stay)" = false ]
	rm "$events"
}
