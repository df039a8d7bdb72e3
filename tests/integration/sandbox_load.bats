#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Sandboxes without an engine under load: fifty at once, two hundred listed, hogs that are bounded,
# the image store, the views on a terminal.
# shellcheck disable=SC2016

bats_require_minimum_version 1.5.0
load env
load bundle

AQE=$AQE_TMP/bin/aqe
DATA=/var/lib/aqe-shim
sb() { timeout --foreground -k 5 120 "$AQE" sandbox "$@" <"$AQE_TMP/low/stdin"; }
start() { sb run -d --image "$(cat "$AQE_TMP/load-image")" --restart no --grace 200ms --start-timeout 100s "$@"; }
events_of() { sb events --sandbox "agentic-qe-default-$1"; }
stats_of() { sb stats --format json "$1" | jq ".sandboxes[0].$2"; }

setup_file() {
	low_setup
	install -m 755 "$(dirname "$AQE_SHIM")/aqe" "$AQE_TMP/bin/aqe.new"
	mv "$AQE_TMP/bin/aqe.new" "$AQE"
	make_archives
	write_containers_conf
	podman_root import "$AQE_TMP/bb.tar" localhost/store >/dev/null 2>&1
	podman_root save --format oci-archive -o "$AQE_TMP/store.tar" localhost/store >/dev/null 2>&1
	sb rmi --all
	sb create --id unpacks --image "oci-archive:$AQE_TMP/store.tar" -- true
	sb rm unpacks
	sb images -q >"$AQE_TMP/load-image"
}
teardown() {
	term kill-server 2>/dev/null || :
	sb destroy-all >/dev/null
}

@test "what most commands do not need is not loaded; what they need is" {
	run readelf -d "$AQE"
	refute_has libcurl
	refute_has libarchive
	run env LD_DEBUG=files "$AQE" sandbox list
	refute_has libcurl
	run env LD_DEBUG=files CONTAINER_HOST=unix:///none "$AQE" sandbox create --engine docker --image x
	refute_has libcurl # there is no socket to speak to
}

@test "fifty at once: started, listed, measured, stopped" {
	local i pids=()
	for i in $(seq 50); do
		start --id "f$i" --memory 64m --pids 16 -- sleep 1000 >"$AQE_TMP/low/f$i" 2>&1 3>&- 4>&- &
		pids+=($!)
	done
	for i in "${!pids[@]}"; do
		wait "${pids[$i]}" || {
			cat "$AQE_TMP/low/f$((i + 1))"
			return 1
		}
	done
	run sb list
	[ "$(grep -c ' running ' <<<"$output")" = 50 ]
	run sb stats --format json
	[ "$(jq '[.sandboxes[] | select(.pids == 1 and .memory_bytes > 0 and .memory_limit_bytes == 67108864)] | length' <<<"$output")" = 50 ]
	for i in 1 25 50; do [ "$(sb exec "f$i" -- id -u)" = 1000 ]; done
	# each its own network, processes, ids
	[ "$(sb list --format json | jq -r '.[].state.pid' | while read -r p; do readlink "/proc/$p/ns/net"; done | sort -u | wc -l)" = 50 ]
	sb destroy-all >/dev/null
	[ -z "$(sb list -q)" ]
	assert_no_leaks
}

# The smallest processor time of ten runs, in milliseconds: the machine may be busy with other things.
cpu_ms() {
	local i best=999999 t TIMEFORMAT='%U %S'
	for i in 1 2 3 4 5 6 7 8 9 10; do
		t=$({ time "$@" >/dev/null 2>&1; } 2>&1)
		t=$(awk '{ printf "%d", ($1 + $2) * 1000 }' <<<"$t")
		[ "$t" -ge "$best" ] || best=$t
	done
	echo "$best"
}

@test "a list of two hundred: its time and its system calls are bounded" {
	local dir=$DATA/sandboxes name i ms
	name=$(sb create --image "$(cat "$AQE_TMP/load-image")" --id first -- sleep 1000)
	for i in $(seq 2 200); do
		cp -a "$dir/$name" "$dir/agentic-qe-default-n$i"
		sed -i "s/$name/agentic-qe-default-n$i/; s/\"first\"/\"n$i\"/" "$dir/agentic-qe-default-n$i/plan.json"
	done
	[ "$(sb list -q | wc -l)" = 200 ]
	ms=$(cpu_ms "$AQE" sandbox list)
	echo "list of 200: $ms ms of CPU" >&3
	# the budget, 50 ms, is for an idle machine: make bench and README; here others are at work, so what
	# it asks of the kernel is counted too
	[ "$ms" -le 200 ]
	strace -f -c -o "$AQE_TMP/low/calls" "$AQE" sandbox list >/dev/null
	[ "$(awk '$NF == "total" { print $4 }' "$AQE_TMP/low/calls")" -le 5000 ]
	rm -rf "$dir"/agentic-qe-default-n*
}

@test "a gigabyte hog is ended by the kernel and recorded; a neighbour does not notice" {
	start --id calm -- sleep 1000
	run sb run --id hog --memory 64m --oom-prevention off --image "$(cat "$AQE_TMP/load-image")" -- dd if=/dev/zero of=/dev/null bs=1G count=1
	assert_status 137
	assert_has "memory limit"
	run events_of hog
	assert_has '"event":"oom_killed"'
	[ "$(sb inspect hog | jq '.[0].state.oom_killed')" = true ]
	run sb health hog
	assert_status 1
	assert_has "oom killed true"
	[ "$(sb exec calm -- id -u)" = 1000 ]
}

@test "a fork bomb ends at its limit; host and neighbour go on" {
	local pid
	start --id calm -- sleep 1000
	start --id bomb --pids 40 -- sh -c 'sh -c "while :; do sleep 1000 & done" 2>/dev/null & wait $!; exec sleep 1000'
	pid=$(sb inspect bomb | jq '.[0].state.pid')
	hit() { is_cgroup_v2 || [ "$(cgroup_value "$pid" pids pids.events)" != "max 0" ]; }
	wait_for hit
	full() { [ "$(stats_of bomb pids)" -ge 38 ]; }
	wait_for full
	# not one more, and outside nothing is short
	[ "$(stats_of bomb pids)" -le 40 ]
	[ "$(sb exec calm -- id -u)" = 1000 ]
	bash -c 'true'
	sb stop -f bomb
	[ ! -e "/proc/$pid" ]
}

@test "near its memory limit a sandbox is asked to stop before the kernel ends it" {
	# what is in a tmpfs cannot be dropped: 61.5 of 64 MB
	start --id near --grace 60s --memory 64m --disk 96m -- sh -c 'trap "echo asked; exit 0" TERM
		dd if=/dev/zero of=/tmp/f bs=256k count=246 2>/dev/null; while :; do sleep 0.1; done'
	ended() { sb list | grep -qE 'default-near .* (exited|stopped) '; }
	wait_for ended
	run events_of near
	assert_has '"oom prevention: reclaim"'
	assert_has '"oom prevention: stop"'
	run sb logs near
	assert_line asked
	run events_of near
	refute_has '"event":"oom_killed"'
}

@test "a tmpfs that fills up gives an event, and no more fits than the limit" {
	start --id disk --disk 8m -- sh -c 'dd if=/dev/zero of=/tmp/f bs=1M count=100 2>/dev/null; sleep 1000'
	told() { events_of disk | grep -q '"resource":"disk"'; }
	wait_for told
	[ "$(stats_of disk disk_bytes)" -le $((8 << 20)) ]
	[ "$(stats_of disk disk_limit_bytes)" -le $((8 << 20)) ]
}

@test "with a network policy the bytes are those that the egress service carried" {
	local origin server in
	install -m 755 "$(dirname "$AQE_SHIM")/aqe-egress" "$AQE_TMP/bin/"
	mkdir -p "$AQE_TMP/web"
	head -c 2097152 /dev/zero >"$AQE_TMP/web/two-mb"
	unshare -n sleep 36000 3>&- 4>&- &
	origin=$!
	apart() { [ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$origin/ns/net")" ]; }
	wait_for apart
	ip link add sbv0 type veth peer name sbv1 netns "$origin"
	ip addr add 10.67.0.1/24 dev sbv0
	ip link set sbv0 up
	nsenter -t "$origin" -n sh -c 'ip link set lo up; ip addr add 10.67.0.2/24 dev sbv1; ip link set sbv1 up'
	nsenter -t "$origin" -n python3 -m http.server 80 --bind 10.67.0.2 -d "$AQE_TMP/web" 3>&- 4>&- >/dev/null 2>&1 &
	server=$!
	listens() { nsenter -t "$origin" -n ss -Hltn | grep -qF 10.67.0.2:80; }
	wait_for listens
	grep -q bytes.test /etc/hosts || echo '10.67.0.2 bytes.test' >>/etc/hosts
	low_policy 'jq=.network = {agents: {default: {access: "whitelisted", domains: ["bytes.test"], allowCidr: ["10.67.0.0/24"]}}}'
	start --id net -- sh -c 'wget -q -O /dev/null http://bytes.test/two-mb && echo fetched; sleep 1000'
	counted() { [ "$(stats_of net net_in_bytes)" -ge 2097152 ]; }
	wait_for counted || {
		sb logs net
		sb stats --format json net
		kill "$server" "$origin"
		return 1
	}
	# the loopback device would count twice, and the same in both directions
	in=$(stats_of net net_in_bytes)
	[ "$in" -le $((2097152 * 21 / 20)) ]
	[ "$(stats_of net net_out_bytes)" -le 100000 ]
	sb rm -f net
	kill "$server" "$origin"
	low_policy
}

# ---- on a terminal ----

@test "top on a terminal: sorts, follows a resize, stops what is chosen, leaves the screen as it was" {
	start --id aaa -- sleep 1000
	start --id zzz -- sh -c 'dd if=/dev/zero of=/tmp/f bs=1M count=10 2>/dev/null; sleep 1000'
	filled() { [ "$(stats_of zzz disk_bytes)" -ge 10485760 ]; }
	wait_for filled
	term -f /dev/null new-session -d -x 130 -y 20 "env TERM=screen '$AQE' sandbox top --interval 300ms; echo status \$?; exec sleep 1000"
	shows 'aqe sandbox top .* 2 running, 2 shown .* by cpu'
	shows 'agentic-qe-default-aaa .*running'
	term send-keys n
	shows 'by name'
	first_is() { screen | grep -m1 -o 'default-[az]*' | grep -qx "default-$1"; }
	wait_for first_is aaa
	term send-keys d
	shows 'by disk'
	wait_for first_is zzz
	# the picture fits: the heading stays in the third line
	term resize-window -x 60 -y 10
	narrow() { [ "$(screen | sed -n 3p | cut -c1-6 | tr -d ' >')" = AGENT ] && [ "$(columns)" -le 60 ]; }
	wait_for narrow
	shows '^.?zzz +running .* 10.* MB'
	term resize-window -x 20 -y 5
	small() { [ "$(columns)" -le 20 ] && screen | grep -q 'aqe sandbox top'; }
	wait_for small
	term resize-window -x 130 -y 20
	shows 'by disk'
	# the first one is chosen: zzz
	term send-keys s
	gone() { ! sb list | grep 'default-zzz' | grep -q running; }
	wait_for gone
	shows ' 1 running, 1 shown'
	term send-keys q
	shows '^status 0'
	run screen
	refute_has "by disk"
	term kill-server
}

@test "stats --watch and NO_COLOR: no escape but those that place the picture" {
	start --id aaa -- sleep 1000
	term -f /dev/null new-session -d -x 130 -y 20 "env NO_COLOR=1 TERM=screen '$AQE' sandbox stats -w --interval 200ms"
	shows 'agentic-qe-default-aaa .*running'
	[ -z "$(term capture-pane -p -e | grep $'\e' | head -1)" ]
	term send-keys C-c
	term kill-server || : # the last window closed
	# on a pipe neither
	run sb stats
	refute_has $'\e'
	assert_match 'agentic-qe-default-aaa .*running'
}

# The last one: it takes the image away.
@test "images: listed, not removed while a sandbox uses them, removed after" {
	local id
	id=$(cat "$AQE_TMP/load-image")
	[[ $id =~ ^sha256:[0-9a-f]{64}$ ]]
	sb create --id user --image "$id" -- sleep 1
	run sb images
	assert_match "^${id:0:19} +[0-9.]+ MB .* 1$"
	run sb rmi "$id"
	assert_status 1
	assert_has "is used by 1 sandbox: agentic-qe-default-user"
	run sb rmi --all
	assert_status 0
	[ "$(sb images -q)" = "$id" ]
	sb rm user
	# while a sandbox is being made nothing goes
	exec 7<"$DATA/store"
	flock -s 7
	run sb rmi "$id"
	exec 7<&-
	assert_status 1
	assert_has "being made"
	# half an image, and names that lead elsewhere
	mkdir "$DATA/store/.new-0123"
	run sb rmi ../sandboxes
	assert_status 1
	run sb rmi "${id:7:8}"
	assert_status 0
	assert_line "$id"
	[ -z "$(ls -A "$DATA/store")" ]
	run sb create --id user --image "$id" -- sleep 1
	assert_status 1
	assert_has "is not in the store"
}
