# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2119,SC2120
# Bundles without an engine: aqe-shim called as an engine would call it, on `runc spec`'s document.
# Needs env.bash. The image is unknown here, so the policy waives `digest`.

low_setup() {
	mkdir -p "$AQE_TMP/bin" "$AQE_TMP/low"
	[ "$AQE_TMP/bin/aqe-shim" -nt "$AQE_SHIM" ] || install -m 755 "$AQE_SHIM" "$AQE_TMP/bin/aqe-shim"
	SHIM=$AQE_TMP/bin/aqe-shim
	[ -d "$AQE_TMP/rootfs" ] || make_rootfs "$AQE_TMP/rootfs"
	: >"$AQE_TMP/low/stdin" # what crun gives to the container's user
	low_policy
}

low_policy() { write_policy waive=digest "$@"; }

# make_bundle NAME [JQ-FILTER]: prints its directory. The document is the runtime's own example with
# a user namespace added and the terminal off.
make_bundle() {
	local dir=$AQE_TMP/low/$1
	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$dir" && runc spec)
	cp -al "$AQE_TMP/rootfs" "$dir/rootfs"
	jq --arg root "$dir/rootfs" '
		.process.terminal = false | .process.args = ["/bin/probe"] | .root.path = $root |
		.linux.namespaces += [{type: "user"}] |
		.linux.uidMappings = [{containerID: 0, hostID: 300000, size: 65536}] |
		.linux.gidMappings = .linux.uidMappings' "$dir/config.json" |
		jq "${2-.}" >"$dir/config.json.new"
	mv "$dir/config.json.new" "$dir/config.json"
	echo "$dir"
}

# The shim with the state directory of the runtime below the sandbox, stdin that is not /dev/null.
low() { timeout --foreground -k 5 60 "$SHIM" --root "/run/low-$AQE_LOW" "$@"; }
low_bare() { timeout --foreground -k 5 60 "$(low_path)" --root "/run/low-$AQE_LOW" "$@"; }

# Runs a command that may leave a container behind: its output goes through a file, because the
# container keeps the descriptors.
to_file() {
	local rc=0
	"$@" >"$AQE_TMP/low/output" 2>&1 <"$AQE_TMP/low/stdin" || rc=$?
	cat "$AQE_TMP/low/output"
	return "$rc"
}

# create BUNDLE ID [GLOBAL OPTION...]: output of the runtime and of the container go to $bundle/out
low_create() {
	local dir=$1 id=$2
	shift 2
	low "$@" create --bundle "$dir" --pid-file "$dir/pid" "$id" >"$dir/out" 2>&1 <"$AQE_TMP/low/stdin"
}

# One whole life; the container's output in $output, the status of the first verb that fails.
low_cycle() {
	local dir=$1 id=$2 rc=0
	low_create "$dir" "$id" || rc=$?
	if [ "$rc" = 0 ]; then
		low start "$id" >>"$dir/out" 2>&1 || rc=$?
		[ "$rc" != 0 ] || wait_for stopped "$id"
		low delete --force "$id" >>"$dir/out" 2>&1
	fi
	cat "$dir/out"
	return "$rc"
}

stopped() { [ "$(low state "$1" | jq -r .status)" = stopped ]; }

# Removes what a failed test left, by the bare runtime.
low_sweep() {
	local d
	for d in "/run/low-$AQE_LOW"/*; do
		[ ! -e "$d" ] || low_bare delete --force "$(basename "$d")" >/dev/null 2>&1 || :
	done
}

low_leaks() {
	find "/run/low-$AQE_LOW" /run/aqe-shim -mindepth 1 -maxdepth 1 -type d ! -name '.*' 2>&1 | grep -v 'No such file' | sed 's/^/state: /'
	awk -v d="$AQE_TMP/low/" 'index($5, d) == 1 { print "mount: " $5 }' /proc/self/mountinfo
	ps -eo pid=,comm=,args= | awk '$2 ~ /^(crun|runc|aqe-shim|probe)/ { print "process: " $0 }'
	find /sys/fs/cgroup -mindepth 2 -type d -name 'low-*' | sed 's/^/cgroup: /'
}
low_clean() { [ -z "$(low_leaks)" ]; }
assert_low_clean() {
	wait_for low_clean || {
		echo "left behind:"
		low_leaks
		return 1
	}
}
