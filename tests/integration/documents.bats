#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The gate on documents that the installed engines write here and now about hardened containers:
# nothing is found but what is true, and each true finding is listed by hand, with its reason.

bats_require_minimum_version 1.5.0
load env

setup_file() {
	engine_start
	jq .linux.seccomp tests/corpus/spec/ok-base.json >"$AQE_TMP/seccomp.json"
	chmod 644 "$AQE_TMP/seccomp.json"
	write_policy jq=".seccompFile = \"$AQE_TMP/seccomp.json\""
	make_documents
}
teardown_file() {
	usual_policy
	engine_clean
}

# All that an engine's user can do by flags.
hardened_flags() {
	local tmpfs=rw,nosuid,nodev,noexec
	[[ $AQE_ENGINE != podman* ]] || tmpfs+=,notmpcopyup
	printf '%s\n' --cap-drop ALL --security-opt no-new-privileges --security-opt "seccomp=$AQE_TMP/seccomp.json" \
		--read-only --tmpfs "/tmp:$tmpfs,size=64m" --tmpfs "/run:$tmpfs,size=16m" --user 1000:1000 \
		--pids-limit 100 --memory 256m --memory-swap 256m --cpus 1 --network none --ulimit core=0:0 \
		--ulimit nofile=20000:20000 --ulimit nproc=4096:4096
	[[ $AQE_ENGINE != podman* ]] || echo --read-only-tmpfs=false # no /var/tmp
	[ "$AQE_ENGINE" != podman-root ] || echo --userns=auto
}

spec_of() {
	local id
	id=$(engine inspect --format '{{.Id}}' "$1")
	case $AQE_ENGINE in
	podman*) cat "$(engine inspect --format '{{.OCIConfigPath}}' "$1")" ;;
	docker*) cat "/run/docker-$AQE_ENGINE/containerd/daemon/io.containerd.runtime.v2.task/moby/$id/config.json" ;;
	esac
}

make_documents() {
	local flags dir=$AQE_TMP/documents
	mkdir -p "$dir"
	mapfile -t flags < <(hardened_flags)
	bare run -d --name documents "${flags[@]}" $IMG sleep 1000
	engine inspect documents >"$dir/inspect.json"
	spec_of documents >"$dir/config.json"
	case $AQE_ENGINE in
	podman*) engine info --format json >"$dir/info.json" ;;
	docker*) engine info --format '{{json .}}' >"$dir/info.json" ;;
	esac
	engine_clean
}

# found FILE OPTION...: a line "property place" for each finding. The order of mounts is podman's
# whim, so their place is the destination.
found() {
	local file=$AQE_TMP/documents/$1
	shift
	"$AQE_SHIM" verify --policy "$POLICY" --engine-info "$AQE_TMP/documents/info.json" --format sarif "$@" "$file" |
		jq -r --slurpfile doc "$file" '.runs[0].results[] | .ruleId + " " +
			(.locations[0].logicalLocations[0].fullyQualifiedName |
				if startswith("/mounts/") then $doc[0].mounts[split("/")[2] | tonumber].destination else . end)' |
		sort -u
}

assert_found() {
	local want
	want=$(sort -u)
	[ "$output" = "$want" ] || {
		diff <(echo "$want") <(echo "$output")
		return 1
	}
}

@test "inspect of a hardened container: nothing but what is true" {
	run found inspect.json
	assert_found < <(case $AQE_ENGINE in
		podman-user) # on cgroup v1 a rootless engine ignores the limits it was given, and shows 0
			is_cgroup_v2 || printf '%s\n' "pids_limit /0/HostConfig/PidsLimit" "memory_limit /0/HostConfig/Memory" \
				"cpu_limit /0/HostConfig/NanoCpus"
			;;
		docker) # a rootful daemon without userns-remap
			echo "rootless /0/HostConfig/UsernsMode"
			;;
		esac)
}

# What --cap-drop ALL and the engines' lists of paths leave in every document.
everywhere() {
	local set prop
	# "capabilities": {} leaves the sets to the runtime
	for set in bounding effective inheritable permitted ambient; do
		for prop in capabilities missing_field; do echo "$prop /process/capabilities/$set"; done
	done
	echo "masked_paths /linux/maskedPaths" # podman lacks /proc/asound, docker /sys/fs/selinux and /sys/dev/block
}

of_podman() {
	echo "mounts /dev/shm" # a bind: its size is not in the document
}

# On cgroup v1 there is no group at all.
of_podman_user() {
	local p
	! is_cgroup_v2 || return 0
	printf '%s\n' "pids_limit /linux/resources/pids/limit" "memory_limit /linux/resources/memory/limit" \
		"memory_limit /linux/resources/memory/swap" "cpu_limit /linux/resources/cpu/quota" \
		"cpu_limit /linux/resources/cpu/period" "devices /linux/resources/devices"
	for p in resources/pids/limit resources/memory/limit resources/memory/swap resources/cpu/quota \
		resources/cpu/period resources/devices cgroupsPath; do
		echo "missing_field /linux/$p"
	done
}

of_docker() {
	# without nosuid and nodev; no flag can give them
	printf 'mounts %s\n' /etc/hosts /etc/hostname /etc/resolv.conf
	printf '%s /process/user/umask\n' user missing_field
	echo "hooks /hooks/prestart"                     # libnetwork-setkey, also without a network
	echo "unknown_field /linux/resources/blockIO"    # {"weight":0}
	case $AQE_ENGINE in
	docker)
		echo "rootless /linux/namespaces"
		echo "sysctl /linux/sysctl/net.ipv4.ping_group_range" # 0 2147483647
		;;
	docker-remap) echo "mounts /sys/fs/cgroup" ;; # not ro
	esac
}

@test "config.json of a hardened container: nothing but what is true" {
	run found config.json --image-digest "$(jq -r '.images[0].imageId' "$POLICY")"
	assert_found < <(
		everywhere
		case $AQE_ENGINE in
		podman*) of_podman ;;
		docker*) of_docker ;;
		esac
		[ "$AQE_ENGINE" != podman-user ] || of_podman_user
	)
}

@test "config.json that the shim made of the engine's: nothing at all" {
	local dir
	usual_policy
	hard_run -d --name made $IMG sleep 1000
	dir=$(find "$(state_dir)" -maxdepth 1 -name "$(engine inspect --format '{{.Id}}' made)@*")
	cp "$dir/config.json" "$AQE_TMP/documents/made.json"
	engine_clean
	write_policy
	run found made.json --image-digest "$(jq -r '.images[0].imageId' "$POLICY")"
	assert_found < <(case $AQE_ENGINE in # what is waived for the start
		docker) echo "rootless /linux/namespaces" ;;
		podman-user) of_podman_user ;;
		esac)
}
