#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2034,SC2046,SC2086,SC2317
# aqe sandbox through real engines: Podman's service (root and rootless) and dockerd, over their
# sockets.

bats_require_minimum_version 1.5.0
load env

AQE=$AQE_TMP/bin/aqe
NAME=agentic-qe-default-life

# Whose sandboxes: those of the engine's user.
sb_env() {
	local host=CONTAINER_HOST=unix://${SOCK-}
	[ "$ENG" = podman ] || host=DOCKER_HOST=$DOCKER_HOST
	[ -z "${AT-}" ] || host=${host%%=*}=$AT
	if [ "$AQE_ENGINE" = podman-user ]; then
		as_user "$host" "$@"
	else
		env "$host" AQE_DATA_DIR="$AQE_TMP/boxes-$AQE_ENGINE" "$@"
	fi
}
sb() { sb_env AQE_ENGINE_TIMEOUT="${AQE_ENGINE_TIMEOUT-60}" timeout --foreground -k 5 120 "$AQE" sandbox "$@" <"$AQE_TMP/stdin"; }
# An engine on a busy machine may be slow; that it hangs is another test's business.
make_box() { sb "$1" --start-timeout 100s --grace 1s --engine "$ENG" --image $IMG "${@:2}"; }

setup_file() {
	engine_start
	install -m 755 "$(dirname "$AQE_SHIM")/aqe" "$AQE_TMP/bin/aqe.new"
	mv "$AQE_TMP/bin/aqe.new" "$AQE"
	: >"$AQE_TMP/stdin"
	service_start
	export SOCK
}
teardown() {
	term kill-server 2>/dev/null || :
	usual_policy
	sb destroy-all >/dev/null
}
teardown_file() {
	engine_clean
	service_stop
}

has_limits() { [ "$AQE_ENGINE" != podman-user ] || is_cgroup_v2; }
box_pid() { sb inspect life | jq '.[0].state.pid'; }

@test "the whole life: run -d, list, inspect, exec, logs, health, stop, start, rm" {
	make_box run -d --id life --grace 30s --env 'A=b "c" $d' -- sh -c \
		'echo "out $AGENT_ID $A"; echo "err $AGENT_TYPE" >&2; trap "echo got TERM; exit 7" TERM; while :; do sleep 0.1; done'
	run sb list
	assert_match "^$NAME +life +default +$ENG +running "
	# the engine knows the same container, with the original's labels, and the shim has hardened it
	[ "$(sb inspect life | jq -r '.[0].state.container')" = "$(engine inspect --format '{{.Id}}' $NAME)" ]
	run engine inspect --format '{{index .Config.Labels "agentic-qe.agent-id"}} {{index .Config.Labels "agentic-qe.sandbox"}}' $NAME
	assert_line "life true"
	run sb exec life -- sh -c 'grep -E "^(CapBnd|NoNewPrivs|Seccomp):" /proc/self/status; id -u; echo to-stderr >&2; exit 5'
	assert_status 5
	assert_match 'CapBnd:.0000000000000000'
	assert_match 'NoNewPrivs:.1'
	assert_match 'Seccomp:.2'
	assert_line 1000
	assert_line to-stderr
	run ! sb exec life -- /no/such/program
	logged() { sb logs life 2>&1 | grep -q "err default"; }
	wait_for logged
	run sb logs life
	assert_line 'out life b "c" $d'
	run sb health life
	assert_status 0
	assert_has "healthy true"
	sb stop life
	run sb list
	assert_match "^$NAME .* (exited|stopped) "
	[ "$(sb inspect life | jq '.[0].state.exit_code')" = 7 ]
	run sb logs --tail 1 life
	assert_line "got TERM"
	refute_has "out life"
	run sb logs --since 1h life
	assert_has "out life"
	run sb logs --since "@$(($(date +%s) + 60))" life
	refute_has "out life"
	sb start life
	run sb list
	assert_match "^$NAME .* running "
	sb rm -f life
	run sb rm life
	assert_status 1
	assert_has "not found"
	run engine inspect $NAME
	[ "$status" != 0 ]
	run sb events --sandbox $NAME
	[ "$(jq -r .event <<<"$output" | tr '\n' ' ')" = "created started stopped started stopped destroyed " ]
}

@test "in the foreground: output, exit status, logs -f until the end" {
	run make_box run --id fg --rm -- sh -c 'echo first; echo second >&2; exit 9'
	assert_status 9
	assert_line first
	assert_line second
	run sb list
	refute_has default-fg
	make_box run -d --id follow --restart no -- sh -c 'for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done'
	run sb logs -f follow
	assert_status 0
	assert_line "line 1"
	assert_line "line 5"
}

@test "stop gives the grace, then kills; a container the engine was told to remove is gone" {
	make_box run -d --id life --grace 1s --restart no -- sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done'
	ready() { sb logs life | grep -q ready; }
	wait_for ready
	sb stop life
	[ "$(engine inspect --format '{{.State.ExitCode}}' $NAME)" = 137 ]
	sb start life
	engine rm -f $NAME >/dev/null
	gone() { ! sb list | grep -q ' running '; }
	wait_for gone
	sb rm -f life
}

@test "limits of the plan are the container's, and the figures are the kernel's and the engine's" {
	local pid json mine other
	has_limits || return 0
	make_box run -d --id life --memory 256m --pids 64 --cpus 0.5 -- sh -c \
		'dd if=/dev/zero of=/tmp/f bs=1M count=20 2>/dev/null; sleep 1000 & sleep 1000 & echo ready; while :; do :; done'
	ready() { sb logs life | grep -q ready; }
	wait_for ready
	pid=$(box_pid)
	json=$(sb stats --format json life)
	[ "$(jq '.sandboxes[0].memory_limit_bytes' <<<"$json")" = $((256 << 20)) ]
	[ "$(jq '.sandboxes[0].pids_limit' <<<"$json")" = 64 ]
	[ "$(jq '.sandboxes[0].cpu_limit_milli' <<<"$json")" = 500 ]
	[ "$(jq '.sandboxes[0].pids' <<<"$json")" = 3 ]
	[ "$(jq '.sandboxes[0].disk_bytes' <<<"$json")" = $((20 << 20)) ]
	if ! is_cgroup_v2; then
		[ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = $((256 << 20)) ]
		[ "$(cgroup_value "$pid" pids pids.current)" = 3 ]
		other=$(cgroup_value "$pid" memory memory.usage_in_bytes)
		mine=$(jq '.sandboxes[0].memory_usage_bytes' <<<"$json")
		close_to "$mine" "$other"
	fi
	# docker leaves droppable cache out, podman shows the group's own figure
	mine=$(jq ".sandboxes[0].$([ $ENG = podman ] && echo memory_usage_bytes || echo memory_bytes)" <<<"$json")
	other=$(engine stats --no-stream --format '{{.MemUsage}}' $NAME | in_bytes)
	close_to "$mine" "$other"
	[ "$(engine stats --no-stream --format '{{.PIDs}}' $NAME)" = 3 ]
	# the processor time only grows: the engine's figure lies between two of ours
	json=$(sb stats --format json life)
	case $ENG in
	podman) other=$(engine stats --no-stream --format '{{.CPUNano}}' $NAME) ;;
	docker) other=$(curl -sS --unix-socket "${DOCKER_HOST#unix://}" "http://docker/v1.40/containers/$NAME/stats?stream=false" | jq .cpu_stats.cpu_usage.total_usage) ;;
	esac
	[ "$(jq '.sandboxes[0].cpu_ns' <<<"$json")" -le "$other" ]
	[ "$(stat_of cpu_ns)" -ge "$other" ]
}
stat_of() { sb stats --format json life | jq ".sandboxes[0].$1"; }

# "20.97MB / 256MB", "20.1MiB / 256MiB": the first, in bytes.
in_bytes() {
	awk '{ n = $1 + 0; u = $1; gsub(/[0-9.]/, "", u); k = u ~ /i/ ? 1024 : 1000
		e = index("BKMG", toupper(substr(u, 1, 1))) - 1; printf "%d\n", n * k ^ e }'
}

# close_to A B: within 5 percent.
close_to() {
	awk -v a="$1" -v b="$2" 'BEGIN { d = a > b ? a - b : b - a; exit !(b > 0 && d * 20 <= b) }' || {
		echo "not within 5 %: $1 and $2"
		return 1
	}
}

# Processor time of the container as the engine's API tells it, in ns, and when: "NS TIME_NS".
engine_cpu() {
	curl -sS --unix-socket "${SOCK-${DOCKER_HOST#unix://}}" "http://e/v1.40/containers/$NAME/stats?stream=false" |
		jq -r '(.read | capture("^(?<s>[^.Z]*)(?<f>[.][0-9]+)?")) as $t |
			"\(.cpu_stats.cpu_usage.total_usage) \(($t.s + "Z" | fromdate) * 1000000000 + ((($t.f // ".0") | tonumber) * 1000000000 | floor))"'
}
# The same of the kernel.
kernel_cpu() { echo "$(cgroup_value "$1" cpuacct cpuacct.usage) $(date +%s%N)"; }
# percent "NS TIME" "NS TIME"
percent() { awk -v a="$1" -v b="$2" 'BEGIN { split(a, x, " "); split(b, y, " "); printf "%.3f", (y[1] - x[1]) * 100 / (y[2] - x[2]) }'; }

@test "CPU percent over one window is the engine's and the kernel's" {
	local docs=$AQE_TMP/tmp/watch pid e1 e2 k1 k2 watcher
	has_limits && ! is_cgroup_v2 || return 0
	make_box run -d --id life --cpus 0.2 -- sh -c 'while :; do :; done'
	pid=$(box_pid)
	rm -f "$docs"
	env $(sb_words) stats -w --interval 6s --format json life >"$docs" 3>&- 4>&- &
	watcher=$!
	docs_are() { [ "$(wc -l <"$docs")" -ge "$1" ]; }
	WAIT_S=60 wait_for docs_are 1
	k1=$(kernel_cpu "$pid") e1=$(engine_cpu)
	WAIT_S=60 wait_for docs_are 2
	k2=$(kernel_cpu "$pid") e2=$(engine_cpu)
	kill "$watcher"
	wait "$watcher" || :
	close_to "$(sed -n 2p "$docs" | jq '.sandboxes[0].cpu_percent')" "$(percent "$k1" "$k2")"
	close_to "$(sed -n 2p "$docs" | jq '.sandboxes[0].cpu_percent')" "$(percent "$e1" "$e2")"
}

# What a terminal runs: no function of ours.
sb_words() {
	case $ENG in
	podman) printf 'CONTAINER_HOST=unix://%s ' "$SOCK" ;;
	*) printf 'DOCKER_HOST=%s ' "$DOCKER_HOST" ;;
	esac
	printf 'AQE_DATA_DIR=%s %s sandbox' "$AQE_TMP/boxes-$AQE_ENGINE" "$AQE"
}

@test "top and stats -w on a terminal: narrow, resized, without colour, and stopping what is chosen" {
	make_box run -d --id aaa -- sleep 1000
	make_box run -d --id zzz -- sh -c 'dd if=/dev/zero of=/tmp/f bs=1M count=10 2>/dev/null; sleep 1000'
	term -f /dev/null new-session -d -x 130 -y 20 "env TERM=screen $(sb_words) top --interval 300ms; echo status \$?; exec sleep 1000"
	shows 'aqe sandbox top .* 2 running, 2 shown .* by cpu'
	shows 'agentic-qe-default-aaa .*running'
	term send-keys d
	shows 'by disk'
	shows 'default-zzz .* 10.* MB'
	term resize-window -x 60 -y 10
	narrow() { [ "$(screen | sed -n 3p | cut -c1-6 | tr -d ' >')" = AGENT ] && [ "$(columns)" -le 60 ]; }
	WAIT_S=60 wait_for narrow
	shows '^.?zzz +running '
	term resize-window -x 130 -y 20
	shows 'agentic-qe-default-zzz .*running'
	term send-keys s
	shows ' 1 running, 1 shown'
	[ "$(engine inspect --format '{{.State.Running}}' agentic-qe-default-zzz)" = false ]
	term send-keys q
	shows '^status 0'
	term kill-server
	term -f /dev/null new-session -d -x 130 -y 20 "env NO_COLOR=1 TERM=screen $(sb_words) stats -w --interval 200ms"
	shows 'agentic-qe-default-aaa .*running'
	term resize-window -x 60 -y 10
	WAIT_S=60 wait_for narrow_stats
	[ -z "$(term capture-pane -p -e | grep $'\e' | head -1)" ]
}
narrow_stats() { [ "$(screen | head -1 | cut -c1-5)" = AGENT ] && [ "$(columns)" -le 60 ]; }

@test "destroy-all ends everything and leaves nothing at the engine" {
	local i
	for i in 1 2; do make_box run -d --id "many$i" -- sleep 1000; done
	[ "$(sb list -q | wc -l)" = 2 ]
	run sb destroy-all
	assert_status 0
	[ -z "$(sb list -q)" ]
	[ -z "$(engine ps -aq)" ]
}

@test "a refusal by policy is told at the start and not retried" {
	usual_policy drop-images
	run make_box run -d --id pinned -- sleep 1000
	assert_status 1
	assert_match 'refused: digest'
	run sb list
	assert_match "agentic-qe-default-pinned .* held "
	run sb events --sandbox agentic-qe-default-pinned
	[ "$(grep -c '"event":"started"' <<<"$output")" = 0 ]
}

@test "what the engine cannot do is said: no such image, options that need no engine" {
	run sb create --engine "$ENG" --image localhost/none:1
	assert_status 1
	assert_has "$ENG has no image 'localhost/none:1'"
	run sb create --engine "$ENG" --rootfs /
	assert_status 2
	assert_has "takes an --image of its own"
	run sb create --engine "$ENG" --image '../../../v1.40/info'
	[ "$status" != 0 ]
	assert_has "no image"
}

# An engine that answers as told (tests/fakes/engine_socket.py); AT makes sb ask it.
liar() {
	AT=unix://$AQE_TMP/tmp/liar.sock
	rm -f "${AT#unix://}"
	python3 "$BATS_TEST_DIRNAME/../fakes/engine_socket.py" "${AT#unix://}" "$@" >/dev/null 2>&1 3>&- 4>&- </dev/null &
	LIAR=$!
	wait_for test -S "${AT#unix://}"
	chmod 666 "${AT#unix://}"
}
liar_end() {
	kill "$LIAR"
	wait "$LIAR" || :
	AT=
}

@test "an engine that is away is said to be, in time" {
	AT=unix:///run/no-such.sock
	run sb create --engine "$ENG" --image $IMG
	assert_status 1
	assert_has "$ENG does not answer at '/run/no-such.sock'"
	AT=tcp://127.0.0.1:2375
	run sb create --engine "$ENG" --image $IMG
	assert_status 1
	assert_has "only an engine on this machine"
	# it takes the connection and says nothing
	liar 1.41
	AQE_ENGINE_TIMEOUT=1 run sb create --engine "$ENG" --image $IMG
	liar_end
	assert_status 1
	assert_has "does not answer at"
	assert_has "in time"
}

@test "an engine that lies gets nothing: versions, ids, bodies that have no end, escapes" {
	local bodies n=0 want
	while IFS='|' read -r want bodies; do
		eval "liar $bodies"
		run sb create --engine "$ENG" --image $IMG
		liar_end
		n=$((n + 1))
		[ "$status" = 1 ] && [[ $output == *"$want"* ]] || {
			echo "case $n, wanted: $want"
			show_output
			return 1
		}
		refute_has $'\e'
	done <<-'L'
		does not speak version 1.40|1.39 200 OK
		does not speak version 1.40|1.99999999999999999999 200 OK
		does not speak version 1.40|1.41 500 OK
		has no id|1.41 200 OK 200 '{"Id": "sha256:00"}'
		has no id|1.41 200 OK 200 '[[[['
		larger than allowed|1.41 200 OK 200 flood
		bad  [31m name|1.41 200 OK 500 '{"message": "bad \u001b[31m\nname"}'
		HTTP status 302|1.41 200 OK 302 ''
	L
	[ -z "$(sb list -q)" ]
}

@test "the version of the API that both sides speak is the one that is used" {
	liar 1.52 200 OK 404 '{"message": "none"}'
	run sb create --engine "$ENG" --image $IMG
	liar_end
	assert_has "has no image"
	run cat "$AQE_TMP/tmp/liar.sock.log"
	assert_line "GET /_ping"
	assert_line "GET /v1.44/images/$IMG/json"
}
