#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What only podman has: pods, health checks on demand, annotations, other storage drivers, its hooks.

bats_require_minimum_version 1.5.0
load env

setup_file() { engine_start; }
teardown_file() { engine_clean; }
teardown() { usual_policy; }

@test "pod: members that share namespaces are refused, unshared ones run hardened" {
	# shellcheck disable=SC2046
	shim pod create --name shared $(user_ns) --infra-image $IMG --infra-command "sleep 1000"
	run shim run --rm --pod shared $IMG echo ran-inside
	[ "$status" != 0 ]
	refute_has ran-inside
	assert_match 'refused: (network|namespaces|rootless|mounts)(:| at /)'
	refute_has engine_socket
	engine pod rm -f -t 0 shared
	shim pod create --name apart --share "" --infra=false
	# podman takes a user namespace for a pod's members from the pod only, which shares it
	[ "$AQE_ENGINE" = podman-user ] || write_policy waive=rootless
	run shim run --rm --pod apart $IMG probe
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	assert_line "ifaces:lo "
	engine pod rm -f -t 0 apart
	assert_no_leaks
}

@test "health check runs inside the rules" {
	# shellcheck disable=SC2016
	hard_run -d --name hc --health-interval disable \
		--health-cmd 'grep -q "CapEff:.0000000000000000" /proc/self/status && grep -q "NoNewPrivs:.1" /proc/self/status' \
		$IMG sleep 1000
	run engine healthcheck run hc
	assert_status 0
	engine_clean
}

@test "hostile annotations do not reach the low-level runtime" {
	local bpf=BgAAAAAA/38= a
	for a in "run.oci.seccomp_bpf_data=$bpf" run.oci.handler=wasm run.oci.hooks.stdout=/run/aqe-test/pwned \
		run.oci.keep_original_groups=1 run.oci.systemd.force_cgroup_v1=/x org.criu.config=/x \
		org.systemd.property.DeviceAllow=x module.wasm.image/variant=compat io.kubernetes.cri.container-type=sandbox; do
		run hard_run --rm --annotation "$a" $IMG probe
		if [ "$status" = 0 ]; then
			assert_line "Seccomp: 2"
			assert_line "unshare=denied"
			assert_line "mount=denied"
		else
			assert_refused run annotations
		fi
	done
	[ ! -e /run/aqe-test/pwned ]
}

@test "an annotation cannot make an image what it is not" {
	run hard_run --rm --annotation io.aqe.image.digest=sha256:$(printf '0%.0s' {1..64}) $IMG_OTHER echo ran-inside
	assert_refused run digest
	run hard_run --rm --annotation io.aqe.agent-type=qe-test-generator $IMG echo ran-inside
	[ "$status" = 126 ]
	refute_has ran-inside
	assert_has qe-test-generator
}

@test "an engine hook is refused or dropped, never run" {
	mkdir -p "$AQE_TMP/hooks.d"
	cat >"$AQE_TMP/hooks.d/x.json" <<-J
		{"version":"1.0.0","hook":{"path":"/bin/touch","args":["touch","$AQE_TMP/hook-ran"]},"when":{"always":true},"stages":["prestart","createRuntime"]}
	J
	# shellcheck disable=SC2046
	run engine --hooks-dir "$AQE_TMP/hooks.d" --runtime aqe-shim run $(user_ns) --rm $IMG echo ran-inside
	[ ! -e "$AQE_TMP/hook-ran" ]
	assert_refused run hooks
}

@test "a root file system that is no image is refused" {
	# shellcheck disable=SC2046
	run shim run --rm --rootfs "$AQE_TMP/rootfs" echo ran-inside
	[ "$status" != 0 ]
	refute_has ran-inside
	assert_match 'refused: (digest|rootless)(:| at /)'
}

@test "the vfs storage driver: the image is known there too" {
	[ "$AQE_ENGINE" = podman-root ] || return 0 # the user's engine uses vfs anyway
	local vfs=(--storage-driver vfs --root "$AQE_TMP/podman-vfs" --runroot /run/podman-vfs) id
	engine "${vfs[@]}" import "$AQE_TMP/bb.tar" $IMG >/dev/null 2>&1
	id=$(engine "${vfs[@]}" image inspect --format '{{.Id}}' $IMG)
	usual_policy jq=".images = [{name: \"vfs\", imageId: \"sha256:$id\"}]"
	run engine "${vfs[@]}" --runtime aqe-shim run --userns=auto --network none --rm $IMG probe
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	run engine "${vfs[@]}" --runtime "$AQE_TMP/bin/aqe-shim" run --rm --userns=auto --cap-add SYS_ADMIN $IMG echo ran-inside
	assert_refused run capabilities
}

@test "the fuse-overlayfs storage driver of a rootless engine" {
	[ "$AQE_ENGINE" = podman-user ] || return 0
	local o=(--storage-driver overlay --storage-opt mount_program=/usr/bin/fuse-overlayfs --root "$AQE_TMP/home/ovl" --runroot "/run/user/$AQE_UID/ovl") id
	engine "${o[@]}" import "$AQE_TMP/bb.tar" $IMG >/dev/null 2>&1
	id=$(engine "${o[@]}" image inspect --format '{{.Id}}' $IMG)
	usual_policy jq=".images = [{name: \"ovl\", imageId: \"sha256:$id\"}]"
	run engine "${o[@]}" --runtime aqe-shim run --rm $IMG probe
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	run engine "${o[@]}" --runtime aqe-shim run --rm $IMG_OTHER echo ran-inside
	[ "$status" != 0 ]
}

@test "a fixed mapping instead of --userns=auto" {
	[ "$AQE_ENGINE" = podman-root ] || return 0
	run shim run --rm --network none --uidmap 0:200000:65536 --gidmap 0:200000:65536 $IMG probe
	assert_status 0
	assert_line "uid_map: 0 200000 65536;"
	# root's own ids do not count as a user namespace
	run shim run --rm --uidmap 0:0:65536 --gidmap 0:0:65536 $IMG echo ran-inside
	assert_refused run 'rootless|user'
}

@test "an interface that podman moves in before the start is found, and its container is gone" {
	local ns=(--userns=auto)
	[ "$AQE_ENGINE" = podman-root ] || ns=(--userns=keep-id --user 1000:1000)
	run shim run --rm "${ns[@]}" $IMG echo ran-inside
	assert_refused run network
	assert_has --network=none
	assert_no_leaks
	# without one there is none to come: podman refuses to connect it later
	shim run -d --name alone "${ns[@]}" --network none $IMG sleep 1000
	run ! engine network connect podman alone
	run engine exec alone probe
	assert_line "ifaces:lo "
	engine_clean
}

@test "a waiver starts what lacks a user namespace" {
	[ "$AQE_ENGINE" = podman-root ] || return 0
	write_policy waive=rootless
	run shim run --rm $IMG probe
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	assert_line "uid=1000 gid=1000"
	# an expired one is as if absent
	write_policy waive=rootless jq='.waivers[].expires = "2020-01-01"'
	run shim run --rm $IMG echo ran-inside
	assert_refused run rootless
}

@test "rootless without cgroups: limits are read back, not believed" {
	[ "$AQE_ENGINE" = podman-user ] || return 0
	is_cgroup_v2 && return 0
	write_policy
	run shim run --rm --network none $IMG cat /proc/self/cgroup
	assert_refused run '(pids|memory|cpu)_limit'
}

@test "registered by path instead of by name the reason is still seen" {
	# shellcheck disable=SC2046
	run engine --runtime "$AQE_TMP/bin/aqe-shim" run $(user_ns) --rm --cap-add SYS_ADMIN $IMG echo ran-inside
	assert_refused run capabilities
}

@test "secrets, --init, tmpfs, extra environment: ordinary options keep working" {
	run hard_run --rm --tmpfs /var/cache -e FOO=bar --workdir /tmp --hostname agent7 $IMG \
		sh -c 'echo "$FOO $(pwd) $(hostname)"; ls -a /run'
	if [ "$status" = 0 ]; then
		assert_line "bar /tmp agent7"
	else
		assert_refused run 'mounts|tmpfs'
	fi
	run hard_run --rm -e FOO=bar --workdir /tmp --hostname agent7 $IMG sh -c 'echo "$FOO $(pwd) $(hostname)"; ls -a /run'
	assert_status 0
	assert_line "bar /tmp agent7"
	assert_has .containerenv
}

@test "two containers at once, ten in a row" {
	local i
	hard_run -d --name one $IMG sleep 1000
	hard_run -d --name two $IMG sleep 1000
	for i in 1 2 3 4 5 6 7 8 9 10; do
		run hard_run --rm $IMG echo "round $i"
		assert_status 0
		assert_line "round $i"
	done
	run engine exec two true
	assert_status 0
	engine_clean
	assert_no_leaks
}
