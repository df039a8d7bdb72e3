#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Last in every lane: engines are stopped, and nothing that the tests made is left in the sandbox.

load env

setup_file() {
	for AQE_ENGINE in docker docker-remap; do
		export DOCKER_HOST=unix:///run/docker-$AQE_ENGINE.sock
		docker_stop
	done
	[ ! -d "$AQE_TMP/home/.local" ] || AQE_ENGINE=podman-user podman_user system migrate >/dev/null 2>&1 || :
}

@test "no container process" {
	AQE_ENGINE=podman-root assert_no_leaks
}

@test "no process but the test's own" {
	strays() {
		ps -eo pid=,ppid=,args= | grep -vE 'sandbox.sh|run_integration|bats|ps -eo|grep|sed -uE| cat$' || :
	}
	none() { [ -z "$(strays)" ]; }
	wait_for none || {
		strays
		false
	}
}

# Podman itself leaves the group of a removed pod in the hierarchies it does not manage, with the
# bare runtimes too.
@test "no container cgroup" {
	run find /sys/fs/cgroup -mindepth 2 -type d -regextype posix-extended -regex '.*[0-9a-f]{12}[^/]*' \
		! -regex '.*/libpod_parent/[0-9a-f]{64}'
	[ -z "$output" ] || {
		echo "$output"
		false
	}
}

@test "no mount of a container and no network namespace" {
	run awk '$5 ~ /^\/run\/(netns|docker\/netns|aqe-shim)\/|\/merged$|containers\/.*\/shm$/ { print $5 }' /proc/self/mountinfo
	[ -z "$output" ] || {
		echo "$output"
		false
	}
}

@test "the device nodes of the sandbox still belong to root" {
	[ "$(stat -c '%u:%g %a' /dev/null)" = "0:0 666" ]
}
