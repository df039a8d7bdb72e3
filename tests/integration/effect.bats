#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2030,SC2031
# The effect check against real containers of one low-level runtime, without an engine. Every test
# creates a container from the hardened spec with one thing wrong, and lets the check compare it
# with the hardened spec: what it says must name that property and no other.
#
#     tests/setup/sandbox.sh env AQE_LOW=crun bats tests/integration/effect.bats

bats_require_minimum_version 1.5.0

readonly PROBE=build/release/unit/effect_probe

case ${AQE_LOW-crun} in
runc) LOW=/usr/sbin/runc ;;
*) LOW=/usr/bin/crun ;;
esac

low() { "$LOW" --root "$W/state" "$@"; }
is_v2() { [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; }

setup_file() {
	[ -n "${AQE_SANDBOX-}" ] || {
		echo "run this in tests/setup/sandbox.sh" >&2
		return 1
	}
	make -s "$PROBE" >&2 || return 1
	export W=$AQE_TMP/effect
	mkdir -p "$W"/{state,rootfs/{bin,proc,sys,dev,tmp,run,etc,workspace,var/lib/aqe},ws,aqe,other}
	cp /bin/busybox "$W/rootfs/bin/"
	ln -sf busybox "$W/rootfs/bin/sleep"
	# crun changes the owner of what it gets as 0, 1 and 2: a fifo of our own, not /dev/null
	mkfifo "$W/io"
	hardened userns >"$W/good.json"
	hardened host >"$W/host.json"
}

teardown_file() {
	[ -z "${W-}" ] || rm -rf "$W"
}

teardown() {
	low delete --force "fx$BATS_TEST_NUMBER" >"$W/io.log" 2>&1 || :
}

# The conforming spec of the corpus with paths of ours. crun 1.8.1 drops nosuid and nodev of a bind
# in a user namespace, but not rnosuid and rnodev.
hardened() {
	jq --arg w "$W" --arg mode "$1" '
		.root.path = $w + "/rootfs" | .process.args = ["/bin/sleep", "60"] | .process.rlimits = []
		| .linux.cgroupsPath = "/aqe-effect" | .linux.rootfsPropagation = "rprivate"
		| (.mounts[] | select(.destination == "/workspace")).source = $w + "/ws"
		| (.mounts[] | select(.destination == "/var/lib/aqe")).source = $w + "/aqe"
		| (.mounts[] | select(.options | index("rbind"))).options += ["rnosuid", "rnodev"]
		| if $mode == "host" then
			del(.linux.uidMappings, .linux.gidMappings) | .linux.namespaces -= [{type: "user"}]
		  else . end' tests/corpus/spec/ok-base.json
}

# Creates a container from the JSON on stdin; its pid in $pid.
create() {
	local b=$BATS_TEST_TMPDIR/bundle
	mkdir -p "$b"
	cat >"$b/config.json"
	(
		exec 4<>"$W/io"
		low create --bundle "$b" --pid-file "$b/pid" "fx$BATS_TEST_NUMBER" <&4 >&4 2>"$b/err"
	) || {
		cat "$b/err"
		return 1
	}
	pid=$(cat "$b/pid")
}

# probe STATUS created|started SPEC
probe() {
	run -"$1" "$PROBE" "$2" "$pid" "$3" "/workspace=$W/ws" "/var/lib/aqe=$W/aqe"
	echo "$output"
}

# The properties that failed, one line.
failed() { sed -n 's/ fail$//p' <<<"$output" | sort | xargs; }
says() { grep -qF -- "$1" <<<"$output"; }

# hostile FILTER PROPERTIES TEXT: created from the spoiled spec, compared with the good one.
hostile() {
	create < <(jq "$1" "$W/good.json")
	probe 1 created "$W/good.json"
	[ "$(failed)" = "$2" ]
	says "$3"
}

@test "a hardened container passes before and after start" {
	create <"$W/good.json"
	probe 0 created "$W/good.json"
	[ "$(grep -c ' pass$' <<<"$output")" = 15 ]
	low start "fx$BATS_TEST_NUMBER"
	probe 0 started "$W/good.json"
	[ "$output" = $'capabilities pass\nno_new_privileges pass\nseccomp pass' ]
}

@test "without a user namespace only rootless fails" {
	create <"$W/host.json"
	probe 1 created "$W/host.json"
	[ "$(failed)" = rootless ]
}

@test "rootless on cgroup v1 only the limits fail" {
	! is_v2 || skip "v2 has limits"
	local d=$W/rl
	mkdir -p "$d/b"
	jq --arg r "$d/rootfs" 'del(.linux.cgroupsPath) | .linux.resources = {} | .root.path = $r
		| .linux.namespaces -= [{type: "cgroup"}]' "$W/host.json" >"$d/b/config.json"
	cp -a "$W/rootfs" "$d/rootfs"
	cp "$PROBE" "$d/probe"
	cat >"$d/run" <<-'R'
		cd "$D" || exit 9
		mkfifo io
		exec 4<>io
		"$LOW" --root "$D/state" create --bundle "$D/b" --pid-file "$D/pid" rl <&4 >&4 2>err || { cat err; exit 9; }
		./probe created "$(cat pid)" b/config.json
		rc=$?
		"$LOW" --root "$D/state" delete --force rl
		exit $rc
	R
	chown -R aqetest "$d"
	run -1 env D="$d" LOW="$LOW" XDG_RUNTIME_DIR=/run/user/4201 setpriv --reuid 4201 --regid 4201 --clear-groups \
		unshare --user --map-root-user --map-auto --mount bash "$d/run"
	echo "$output"
	[ "$(failed)" = "cpu_limit memory_limit pids_limit" ]
	says "rootless engine on cgroup v1 applies no limits"
}

@test "a capability in the bounding set" {
	hostile '.process.capabilities.bounding = ["CAP_NET_RAW"]' capabilities "CapBnd 0000000000002000"
}

@test "a capability in all sets" {
	hostile '.process.capabilities |= map_values(["CAP_CHOWN"])' capabilities "CapAmb 0000000000000001"
}

@test "no_new_privileges off" {
	hostile '.process.noNewPrivileges = false' no_new_privileges "NoNewPrivs 0"
}

@test "writable root" {
	hostile '.root.readonly = false' readonly_rootfs "'/' is writable"
}

@test "another root directory" {
	cp -a "$W/rootfs" "$W/rootfs2"
	hostile '.root.path += "2"' mounts "another directory"
}

@test "one more bind" {
	hostile '.mounts += [{destination: "/etc", type: "bind", source: "/etc",
		options: ["rbind", "ro", "nosuid", "nodev", "rprivate"]}]' mounts "mount '/etc'"
}

@test "a bind that crun leaves without nosuid and nodev" {
	local plain='(.mounts[] | select(.options | index("rbind"))).options -= ["rnosuid", "rnodev"]'
	if [ "$LOW" = /usr/bin/crun ]; then
		hostile "$plain" mounts "mount '/workspace' without nosuid"
		return
	fi
	create < <(jq "$plain" "$W/good.json")
	probe 0 created "$W/good.json"
}

@test "a bind without nodev" {
	hostile '(.mounts[] | select(.destination == "/workspace")).options -= ["nodev", "rnodev"]' \
		mounts "mount '/workspace' without nodev"
}

@test "a bind whose source was exchanged" {
	hostile '(.mounts[] | select(.destination == "/workspace")).source |= sub("/ws$"; "/other")' \
		mounts "'/workspace' is another file"
}

@test "a mount of the spec that is missing" {
	hostile '.mounts |= map(select(.destination != "/workspace"))' mounts "not mounted"
}

@test "a root that propagates" {
	# what runc does by itself where the host's root is shared; crun only does it when told
	local how=rslave
	[ "$LOW" = /usr/sbin/runc ] || how=shared
	hostile ".linux.rootfsPropagation = \"$how\"" propagation "mount '/' propagates"
}

@test "no tmpfs at /tmp" {
	hostile '.mounts |= map(select(.destination != "/tmp"))' tmpfs "not mounted"
}

@test "a larger tmpfs at /run" {
	hostile '(.mounts[] | select(.destination == "/run")).options |= map(sub("size=.*"; "size=999m"))' \
		tmpfs "size=1022976k"
}

@test "nothing masked" {
	hostile '.linux.maskedPaths = []' masked_paths "/proc/keys: visible in the container"
}

@test "nothing read-only" {
	hostile '.linux.readonlyPaths = []' masked_paths "/proc/sys: writable"
}

@test "no limits" {
	hostile '.linux.resources |= {devices: .devices}' "cpu_limit memory_limit pids_limit" "pids.max: none"
}

@test "limits above the spec" {
	hostile '.linux.resources |= (.pids.limit = 600 | .cpu.quota = 300000
		| .memory = {limit: 2147483648, swap: 2147483648})' \
		"cpu_limit memory_limit pids_limit" "pids.max: 600"
}

@test "swap on top of memory" {
	[ -e /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes ] || skip "no swap accounting of v1"
	hostile '.linux.resources.memory.swap = 2147483648' memory_limit "memory.memsw.limit_in_bytes: 2147483648"
}

@test "the devices group admits a disk" {
	! is_v2 || skip "the rules of v2 cannot be read"
	hostile '.linux.resources.devices += [{allow: true, type: "b", major: 8, minor: 0, access: "rw"}]' \
		devices "devices.list admits 'b 8:0 rw'"
}

@test "one more device node" {
	create < <(jq '.linux.devices = [{path: "/dev/kmsg", type: "c", major: 1, minor: 11}]' "$W/host.json")
	probe 1 created "$W/host.json"
	[ "$(failed)" = "rootless devices" ] || [ "$(failed)" = "devices rootless" ]
	says "node '/dev/kmsg'"
}

@test "an interface that came after create" {
	create <"$W/good.json"
	nsenter --target "$pid" --net ip tuntap add fx0 mode tap
	probe 1 created "$W/good.json"
	[ "$(failed)" = network ]
	says "interface 'fx0'"
}

@test "the host's network" {
	ip tuntap add fxh0 mode tap
	create < <(jq '.linux.namespaces -= [{type: "network"}]
		| .mounts |= map(select(.destination != "/sys/fs/cgroup" and .destination != "/sys"))' "$W/host.json")
	probe 1 created "$W/host.json"
	ip link del fxh0
	[[ " $(failed) " == *" namespaces "* && " $(failed) " == *" network "* ]]
	says "the network namespace of the runtime"
	says "interface 'fxh0'"
}

@test "the host's pid, ipc and uts namespaces" {
	local ns
	for ns in ipc uts pid; do
		create < <(jq --arg ns "$ns" '.linux.namespaces -= [{type: $ns}] | del(.hostname)
			| .mounts |= map(select(.destination != "/dev/mqueue"))' "$W/host.json")
		probe 1 created "$W/host.json"
		says "the $ns namespace of the runtime"
		low delete --force "fx$BATS_TEST_NUMBER"
	done
	says "pid 1 of a pid namespace of its own"
}

@test "root inside" {
	hostile '.process.user.uid = 0' user "Uid: 100000"
}

@test "one more group" {
	hostile '.process.user.additionalGids += [5]' user "supplementary group 100005"
}

@test "umask 0" {
	hostile '.process.user.umask = 0' user "umask 0000"
}

@test "other mappings" {
	create < <(jq '.linux.uidMappings[0].hostID = 200000' "$W/good.json")
	probe 1 created "$W/good.json"
	[[ " $(failed) " == *" rootless "* ]]
	says "uid_map differs"
}

@test "seccomp off" {
	create < <(jq 'del(.linux.seccomp)' "$W/good.json")
	low start "fx$BATS_TEST_NUMBER"
	probe 1 started "$W/good.json"
	[ "$(failed)" = seccomp ]
	says "Seccomp 0, 0 filters"
}

@test "a command that ends at once passes after start" {
	create < <(jq '.process.args = ["/bin/busybox", "true"]' "$W/good.json")
	low start "fx$BATS_TEST_NUMBER"
	# the probe opens /proc/PID by itself, so the process may be gone before that: no verdict then
	run "$PROBE" started "$pid" "$W/good.json"
	[ "$status" = 0 ] || [ "$status" = 4 ]
	[[ $output != *fail* ]]
}
