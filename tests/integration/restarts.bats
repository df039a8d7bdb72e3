#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2046,SC2086 # $IMG is one word, $(user_ns) none or some
# U47: crash loops under an engine: its own restart policy is delayed and held by the shim; aqe
# supervise, over the engine's REST API, does without one.

bats_require_minimum_version 1.5.0
load env

AQE=$(dirname "$AQE_SHIM")/aqe

setup_file() {
	engine_start
	service_start
	export SOCK
}
# podman 4.3's conmon leaves its file "oom" where podman was called
setup() { cd "$AQE_TMP/tmp" || return 1; }
teardown() { engine_clean; }
teardown_file() { service_stop; }

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

has_limits() { [ "$AQE_ENGINE" != podman-user ] || is_cgroup_v2; }
HOG='dd if=/dev/zero of=/dev/null bs=200M count=1'

@test "U47: an engine's restart loop is held at the fifth short life, a reset lets go; also ends by 143 and by OOM" {
	local id name
	hard_run -d --name loop --restart always $IMG sh -c 'exit 3'
	hard_run -d --name terms --restart always $IMG sh -c 'exit 143'
	! has_limits || hard_run -d --name hog --restart always --memory 64m $IMG sh -c "$HOG"
	for name in loop terms hog; do
		[ $name != hog ] || has_limits || continue
		id=$(id_of $name)
		WAIT_S=240 wait_for is_held "$id"
		[ "$(jq .failures "$(counts)/$id.json")" = 5 ]
	done
	id=$(id_of loop)
	# held: a start by hand is refused, with the code and the way out
	engine stop -t 0 loop >/dev/null 2>&1 || :
	run engine start loop
	[ "$status" != 0 ]
	assert_has AGENTOS_CRASH_LOOP
	run aqe sandbox reset "${id:0:12}"
	assert_status 0
	[ "$(aqe audit list --kind system --container "$id" --format jsonl | jq -r .reason)" = reset ]
	[ ! -e "$(counts)/$id.json" ]
}

@test "U47: who is stopped again and again, and ends with 143, is no crash loop" {
	local id n
	shim create $(user_ns) --name good --restart always $IMG sh -c 'trap "exit 143" TERM; echo up; while :; do sleep 0.1; done' >/dev/null
	id=$(id_of good)
	for n in 1 2 3 4 5 6; do
		engine start good >/dev/null
		is_up() { [ "$(engine logs good 2>&1 | grep -c up)" = "$n" ]; }
		WAIT_S=60 wait_for is_up
		engine stop -t 30 good >/dev/null
		[ "$(engine inspect --format '{{.State.ExitCode}}' good)" = 143 ]
	done
	[ ! -e "$(counts)/$id.json" ] || [ "$(jq .failures "$(counts)/$id.json")" = 0 ]
}

@test "docker: U47: twenty loops at once, of every kind of end, are each held at five" {
	local ends=("exit 1" "exit 143" "exit 137" "$HOG" "exit 255") n id
	for n in $(seq 20); do
		hard_run -d --name "many$n" --restart always --memory 64m $IMG sh -c "${ends[$((n % 5))]}" >/dev/null &
	done
	wait
	for n in $(seq 20); do
		id=$(id_of "many$n")
		WAIT_S=240 wait_for is_held "$id"
		[ "$(jq .failures "$(counts)/$id.json")" = 5 ]
		# five starts went through, the sixth was refused
		[ "$("$AQE" audit list --kind start --format jsonl --container "$id" | wc -l)" = 5 ]
	done
}

# aqe with the engine's socket, for the background too: no shell in between that signals go to.
api() {
	case $ENG in
	podman) echo "CONTAINER_HOST=unix://$SOCK" ;;
	*) echo "DOCKER_HOST=$DOCKER_HOST" ;;
	esac
}
make_one() { shim create $(user_ns) --name "$@" >/dev/null; }
sv() { timeout --foreground -k 5 90 env "$(api)" "$AQE" supervise --engine "$ENG" --events "$EVENTS" "$@"; }
sv_bg() {
	env "$(api)" "$AQE" supervise --engine "$ENG" --events "$EVENTS" "$@" >"$AQE_TMP/sv-out" 2>&1 </dev/null 3>&- &
	SV=$!
}
new_events() {
	EVENTS=$AQE_TMP/supervise-events
	rm -f "$EVENTS"
}
has_event() { grep -q "\"event\":\"$1\"" "$EVENTS"; }
# What the audit log says of an id: action and reason, with a status where there is one.
rows_of() { "$AQE" audit list --format jsonl --container "$1" | jq -r '"\(.action) \(.reason) \(.status // "")"' | sed 's/ $//'; }

@test "supervise: a container that crashes is started by the schedule and held; reset is a new chance" {
	local id
	new_events
	make_one sv $IMG sh -c 'exit 3'
	run sv sv
	assert_status 1
	assert_has AGENTOS_CRASH_LOOP
	[ "$(jq -r 'select(.event == "started" or .event == "ended") | "\(.event) \(.exit_code // "")"' "$EVENTS" | tr '\n' ' ')" = \
		"started  ended 3 started  ended 3 started  ended 3 started  ended 3 started  ended 3 " ] || {
		cat "$EVENTS"
		return 1
	}
	jq -es '[.[] | select(.event == "backoff")] | map(.failures) == [1, 2, 3, 4] and
		all(.[]; .delay_ms <= 500 * pow(2; .failures - 1))' "$EVENTS"
	id=$(id_of sv)
	is_held "$id"
	run aqe supervise reset sv
	assert_status 0
	[ ! -e "$(counts)/$id.json" ] # the shim's own
	[ "$(aqe supervise status --format json sv | jq .ids[0].failures)" = 0 ]
	# every one of it is evidence
	[ "$(rows_of sv)" = "$(
		for n in 1 2 3 4 5; do printf 'allowed started\nallowed ended 3\n'; done
		printf 'refused AGENTOS_CRASH_LOOP\nchanged reset\n'
	)" ] || {
		rows_of sv
		return 1
	}
}

@test "supervise: SIGTERM ends the container with the supervisor; one that is not there is named" {
	new_events
	run sv nobody
	assert_status 1
	assert_has "no container 'nobody'"
	make_one stay $IMG sleep 1000
	sv_bg --grace 1 stay
	WAIT_S=60 wait_for has_event alive
	[ "$(jq -r 'select(.event == "started") | .pid' "$EVENTS")" = "$(pid_of stay)" ]
	kill -TERM $SV
	wait $SV
	[ "$(engine inspect --format '{{.State.Running}}' stay)" = false ]
	[ "$(jq -r 'select(.event == "ended") | .exit_code' "$EVENTS")" = 137 ]
	[ "$(rows_of stay | cut -d' ' -f2 | tr '\n' ' ')" = "started ended stopped " ]
}

@test "supervise: SIGKILL of the supervisor loses nothing: the next one adopts the container" {
	local pid
	new_events
	make_one kept $IMG sleep 1000
	sv_bg --grace 1 kept
	WAIT_S=60 wait_for has_event alive
	pid=$(pid_of kept)
	kill -KILL $SV
	wait $SV || :
	[ -e "/proc/$pid" ]
	sv_bg --grace 1 kept
	WAIT_S=60 wait_for has_event adopted
	[ "$(jq -r 'select(.event == "adopted") | .pid' "$EVENTS")" = "$pid" ]
	kill -TERM $SV
	wait $SV
	[ "$(grep -c '"event":"started"' "$EVENTS")" = 1 ]
	[ ! -e "/proc/$pid" ]
}

@test "supervise: an end for lack of memory is told with its status, and as such where the engine knows" {
	local knows=true reason=oom
	has_limits || return 0
	# podman 4.3 does not, with cgroup v1
	[ "$ENG" = docker ] || knows=null reason=ended
	new_events
	make_one hog --memory 64m $IMG $HOG
	sv_bg --grace 0 hog
	WAIT_S=60 wait_for has_event ended
	kill -TERM $SV
	wait $SV
	[ "$(jq -cs '[.[] | select(.event == "ended")][0] | [.exit_code, .oom_killed]' "$EVENTS")" = "[137,$knows]" ] || {
		cat "$EVENTS"
		return 1
	}
	[ "$(rows_of hog | sed -n 2p)" = "allowed $reason 137" ]
}

# The process behind the API.
service_pid() {
	case $ENG in
	podman) cat "$(dirname "$SOCK")/service.pid" ;;
	*) cat "/run/docker-$AQE_ENGINE.pid" ;;
	esac
}

@test "supervise: an API that hangs is timed out, costs no container its life, and is used again" {
	local pid service
	service=$(service_pid)
	new_events
	# it ends when it is told to, while the API is silent
	make_one hung $IMG sleep 1000
	sv_bg --timeout 1 --grace 0 hung
	WAIT_S=60 wait_for has_event alive
	pid=$(pid_of hung)
	kill -STOP "$service"
	kill -KILL "$pid"
	WAIT_S=60 wait_for has_event backoff || {
		kill -CONT "$service"
		cat "$EVENTS"
		return 1
	}
	kill -CONT "$service"
	again() { [ "$(grep -c '"event":"started"' "$EVENTS")" -ge 2 ]; }
	WAIT_S=60 wait_for again || {
		cat "$EVENTS"
		return 1
	}
	kill -TERM $SV
	wait $SV
	[ "$(engine inspect --format '{{.State.Running}}' hung)" = false ]
}
