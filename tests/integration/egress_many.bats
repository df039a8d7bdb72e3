#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Two hundred containers at once, each with a policy and an egress service of its own.

bats_require_minimum_version 1.5.0
load env
load bundle

MANY="$BATS_TEST_DIRNAME/egress/many.py"
COUNT=200

# A root file system with an identity, as `aqe sandbox` unpacks it; all share it, it is read-only.
make_store() {
	local id
	id=$(echo '{}' | sha256sum | cut -d' ' -f1)
	mkdir -p "/var/lib/aqe-shim/store/$id"
	echo '{}' >"/var/lib/aqe-shim/store/$id/config.json"
	make_rootfs "/var/lib/aqe-shim/store/$id/rootfs"
	# busybox's own wget, linked statically, cannot look names up without libraries
	ldd /usr/bin/curl | grep -o '/[^ ]*' | xargs -I {} cp --parents -L {} /usr/bin/curl "/var/lib/aqe-shim/store/$id/rootfs"
	echo 'hosts: dns' >"/var/lib/aqe-shim/store/$id/rootfs/etc/nsswitch.conf"
	echo "sha256:$id" >>"$AQE_TMP/pinned"
	mkdir -p "$AQE_TMP/many"
	(cd "$AQE_TMP/many" && runc spec)
	jq --arg root "/var/lib/aqe-shim/store/$id/rootfs" '.process.terminal = false | .root.path = $root |
		.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 300000, size: 65536}] |
		.linux.gidMappings = .linux.uidMappings' "$AQE_TMP/many/config.json" >"$AQE_TMP/many/base.json"
}

setup_file() {
	low_setup
	export SHIM
	install -m 755 "$(dirname "$AQE_SHIM")/aqe-egress" "$AQE_TMP/bin/"
	make_store
	python3 "$MANY" agents $COUNT >"$AQE_TMP/many/agents"
	write_policy jq="(.images[].types = [range($COUNT) | \"many\" + (1000 + . | tostring)[1:]]) |
		.agents = (.images[0].types | map({(.): {pids: 16, memory: 33554432, cpus: 0.5}}) | add) | .network = {agents: $(cat "$AQE_TMP/many/agents")}"
	unshare -n sleep 36000 3>&- 4>&- &
	local pid=$!
	echo $pid >"$AQE_TMP/many/pids"
	wait_for sh -c "[ \$(readlink /proc/$pid/ns/net) != $(readlink /proc/self/ns/net) ]"
	ip link add egm0 type veth peer name egm1 netns $pid
	ip addr add 10.66.0.1/16 dev egm0
	ip link set egm0 up
	python3 "$MANY" hosts $COUNT >>/etc/hosts
	python3 "$MANY" hosts $COUNT | awk '{ print "addr add " $1 "/16 dev egm1" }' >"$AQE_TMP/many/ip"
	nsenter -t $pid -n sh -c "ip link set lo up; ip -batch $AQE_TMP/many/ip; ip link set egm1 up"
	nsenter -t $pid -n python3 "$BATS_TEST_DIRNAME/egress/origin.py" "$AQE_TMP/many/origin.jsonl" 0.0.0.0 80 http 3>&- 4>&- >/dev/null 2>&1 &
	echo $! >>"$AQE_TMP/many/pids"
	wait_for sh -c "nsenter -t $pid -n ss -Hltn | grep -qF 0.0.0.0:80"
}
teardown_file() {
	local pid d
	for d in "/run/low-$AQE_LOW"/low-many*; do # of a test that failed
		[ ! -e "$d" ] || low delete --force "$(basename "$d")" >/dev/null 2>&1 || :
	done
	while read -r pid; do kill "$pid" 2>/dev/null; done <"$AQE_TMP/many/pids"
	wait_for test ! -e /sys/class/net/egm0
	sed -i '/ h[0-9]*\.test$/d' /etc/hosts
	rm -rf /var/lib/aqe-shim/store "$AQE_TMP/many"
	low_policy
}

@test "two hundred containers at once: each reaches its own host only, its rows carry its agent, nothing stays" {
	run timeout 600 python3 "$MANY" "$SHIM" "$(dirname "$AQE_SHIM")/aqe" "$AQE_LOW" "$AQE_TMP/many" $COUNT
	assert_status 0
	printf '# %s\n' "${lines[@]}" >&3
	# each origin was asked by its own container alone: by the proxy and by the stub
	run jq -rs '[.[] | select(.head)] | group_by(.at) | map(length) | unique | @csv' "$AQE_TMP/many/origin.jsonl"
	assert_line 2
	[ "$(jq -s '[.[] | select(.head) | .at] | unique | length' "$AQE_TMP/many/origin.jsonl")" = $COUNT ]
	assert_low_clean
}
