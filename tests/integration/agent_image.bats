#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The agent's image and its compose file: built on a local base, run by the engines through aqe-shim.
# shellcheck disable=SC2016,SC2317

bats_require_minimum_version 1.5.0
load env

IMAGES=$BATS_TEST_DIRNAME/../../shim/images
AGENT=localhost/aqe-agent

# The test image with what a base has and an agent's image must not: package managers, a set-id file.
base_tar() {
	[ ! -e "$AQE_TMP/base.tar" ] || return 0
	local root=$AQE_TMP/base
	cp -a "$AQE_TMP/rootfs" "$root"
	mkdir -p "$root"/usr/{bin,sbin} "$root/var/lib/dpkg"
	for f in apt apt-get yum npm pip; do
		printf '#!/bin/sh\necho package-manager\n' >"$root/usr/bin/$f"
		chmod 755 "$root/usr/bin/$f"
	done
	printf '#!/bin/sh\n' >"$root/usr/bin/set-id"
	chmod 4755 "$root/usr/bin/set-id"
	tar -C "$root" --owner=0 --group=0 -cf "$AQE_TMP/base.tar" .
}

pin() {
	image_id "$1" >>"$AQE_TMP/pinned"
	usual_policy "${@:2}"
}

setup_file() {
	engine_start
	base_tar
	engine import "$AQE_TMP/base.tar" localhost/base >/dev/null 2>&1
	mkdir -p "$AQE_TMP/bin" "$AQE_TMP/workspace-agent"
	install -m 755 "$(dirname "$AQE_SHIM")/aqe" "$AQE_TMP/bin/aqe"
	: >"$AQE_TMP/stdin"
}
teardown_file() { engine_clean; }

# What must hold in the running agent, whoever started it; "in_agent" runs a command inside.
check_inside() {
	# by name anywhere; what the test's busybox has built in is no file
	run in_agent sh -c 'for p in apk apt apt-get dnf dpkg microdnf npm pip rpm yum zypper; do find / -xdev -name $p 2>/dev/null; done; echo end'
	[ "$output" = end ] || {
		show_output
		return 1
	}
	run in_agent sh -c 'find / -xdev -type f \( -perm -4000 -o -perm -2000 \) 2>/dev/null; id -u; id -g'
	assert_status 0
	[ "$(tr '\n' ' ' <<<"$output")" = "1001 1001 " ] || {
		show_output
		return 1
	}
	# writes end in the tmpfs mounts alone
	run in_agent sh -c 'for d in / /app /bin /etc /tmp /run /usr /var /workspace; do if (: >$d/w) 2>/dev/null; then echo "write $d"; fi; done'
	assert_status 0
	[ "$(sort <<<"$output" | tr '\n' ' ')" = "write /run write /tmp " ] || {
		show_output
		return 1
	}
	run in_agent agent-health
	assert_status 0
	[ -z "$output" ]
}

@test "buildah builds it, podman runs it through the shim, its health check is healthy" {
	export CONTAINERS_STORAGE_CONF=$AQE_TMP/storage.conf
	run timeout -k 5 300 buildah bud --isolation chroot --pull-never --format docker --build-arg BASE=localhost/base \
		-t $AGENT -f "$IMAGES/agent.Dockerfile" "$IMAGES"
	assert_status 0
	engine save --format docker-archive -o "$AQE_TMP/agent.tar" $AGENT >/dev/null
	run hard_run --rm $AGENT true
	assert_refused run digest
	pin $AGENT
	hard_run -d --name agent --health-interval disable $AGENT
	in_agent() { engine exec agent "$@"; }
	check_inside
	run engine healthcheck run agent
	assert_status 0
	# a stopped agent is found by it
	run in_agent sh -c 'sed -n "s/^State:.\(.\).*/\1/p" /proc/1/status'
	assert_line S
	kill -STOP "$(pid_of agent)"
	run engine healthcheck run agent
	[ "$status" != 0 ]
	kill -CONT "$(pid_of agent)"
	engine_clean
	# without the runtime the check says what is missing
	run bare run --rm --network none $AGENT agent-health
	assert_status 1
	assert_has "the root file system is writable"
	engine_clean
}

@test "the same image without an engine" {
	sb() { timeout --foreground -k 5 120 "$AQE_TMP/bin/aqe" sandbox "$@" <"$AQE_TMP/stdin"; }
	in_agent() { sb exec built -- "$@"; }
	healthy() { sb health built | grep -q 'check healthy'; }
	sb run -d --id built --health-interval 500ms --health-start-period 100ms --image "docker-archive:$AQE_TMP/agent.tar"
	check_inside
	wait_for healthy
	sb rm -f built
	# one layer, and no package manager in it
	mkdir "$AQE_TMP/layers"
	tar -C "$AQE_TMP/layers" -xf "$AQE_TMP/agent.tar"
	find "$AQE_TMP/layers" -type f -exec sh -c 'tar -tf "$1" 2>/dev/null' sh {} \; >"$AQE_TMP/names"
	[ "$(grep -c 'usr/local/bin/agent-health$' "$AQE_TMP/names")" = 1 ]
	run grep -E '(^|/)(apt|apt-get|dpkg|npm|pip|yum)$' "$AQE_TMP/names"
	assert_status 1
	rm -r "$AQE_TMP/layers"
}

@test "docker-compose builds and runs it: hardened, healthy, stopped" {
	compose() {
		AGENT_BASE=localhost/base AGENT_IMAGE=$AGENT AGENT_HEALTH_INTERVAL=1s COMPOSE_PROJECT_NAME=agents \
			timeout --foreground -k 5 300 docker-compose -f "$IMAGES/compose.yaml" "$@" </dev/null 3>&- 4>&-
	}
	run compose config
	assert_status 0
	run compose build
	assert_status 0
	run compose up -d
	[ "$status" != 0 ]
	assert_match 'refused: digest'
	pin $AGENT
	run compose up -d
	assert_status 0
	in_agent() { engine exec agents_agent_1 "$@"; }
	check_inside
	is_healthy() { [ "$(engine inspect --format '{{.State.Health.Status}}' agents_agent_1)" = healthy ]; }
	WAIT_S=90 wait_for is_healthy
	run "$AQE_SHIM" verify --container docker:agents_agent_1
	assert_status 0
	assert_has conform
	run compose down
	assert_status 0
	[ -z "$(engine ps -aq)" ]
}
