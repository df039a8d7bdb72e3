#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The audit log under real engines: which rows a container's life leaves, what is never in them, and
# that a log which takes no rows refuses, in the engine's own words, and leaves nothing behind.

bats_require_minimum_version 1.5.0
load env

setup_file() {
	engine_start
	install -m 755 "$(dirname "$AQE_SHIM")/aqe" "$AQE_TMP/bin/aqe"
}
teardown_file() {
	engine_clean
	usual_policy
}
setup() {
	usual_policy
	fresh_log
}
teardown() {
	engine_clean
	if mountpoint -q "$(log_dir)"; then umount "$(log_dir)"; fi
}

log_dir() {
	case $AQE_ENGINE in
	podman-user) echo "$AQE_TMP/home/.local/state/aqe-shim/audit" ;;
	*) echo /var/lib/aqe-shim/audit ;;
	esac
}
log_owner() { [ "$AQE_ENGINE" = podman-user ] && echo "$AQE_UID" || echo 0; }
fresh_log() {
	rm -rf "$(log_dir)"
	rm -f "$(state_dir)"/audit-lost.*
}

# Fails when the command succeeds (bats takes no notice of a plain `!`).
lacks() {
	if "$@"; then
		echo "unexpected: $*"
		return 1
	fi
}
cli() {
	if [ "$AQE_ENGINE" = podman-user ]; then as_user "$AQE_TMP/bin/aqe" "$@"; else "$AQE_TMP/bin/aqe" "$@"; fi
}
# rows [FILTER-OPTION...]: one JSON object a line
rows() { cli audit list --since all --format jsonl "$@"; }
# count FILTER: rows for which a jq filter holds
count() { rows | jq -s "[.[] | select($1)] | length"; }

verifies() {
	run cli audit verify
	assert_status 0
}

# Options that name the agent, where the engine has annotations or labels.
agent_id() {
	case $AQE_ENGINE in
	podman*) echo --annotation "io.aqe.agent-id=$1" ;;
	docker) echo --label "io.aqe.agent-id=$1" ;;
	esac
}
remove() {
	case $AQE_ENGINE in
	podman*) engine rm -f -t 0 "$1" ;;
	docker*) engine rm -f "$1" ;;
	esac
}
# shellcheck disable=SC2153 # of env.bash
policy_digest() { echo "sha256:$(sha256sum <"$POLICY" | cut -d' ' -f1)"; }

# A tmpfs in the log's place, filled up afterwards by `fill`.
small_log() {
	mkdir -p "$(log_dir)"
	chown -R "$(log_owner):$(log_owner)" "$(dirname "$(log_dir)")"
	mount -t tmpfs -o "mode=700,uid=$(log_owner),gid=$(log_owner),size=512k" small "$(log_dir)"
}
fill() {
	dd if=/dev/zero of="$(log_dir)/.filler" bs=4k 2>/dev/null || :
	chown "$(log_owner)" "$(log_dir)/.filler"
}

# What a refused container may have left: all but the log's own mount.
left() { leaks | grep -vF "mount: $(log_dir)"; }
nothing_left() { [ -z "$(left)" ]; }

# not_recorded TEXT: a run is refused because of the log, says why, and leaves nothing
not_recorded() {
	run hard_run --rm --name lost $IMG echo ran-inside
	[ "$status" != 0 ]
	assert_has "refused: not recorded: audit log"
	assert_has "$1"
	refute_has "ran-inside"
	local phrase
	for phrase in "permission denied" "operation not permitted" "no such file or directory"; do
		refute_has "$phrase"
	done
	remove lost >/dev/null 2>&1 || :
	[ -n "$(engine ps -q)" ] || wait_for nothing_left || {
		left
		return 1
	}
}
recorded_again() {
	run hard_run --rm $IMG echo ran-inside
	assert_status 0
	assert_has "ran-inside"
	[ "$(count '.kind == "start"')" -ge 1 ]
	verifies
}
gap_of() { rows --kind system | jq -r 'select(.reason == "gap") | .meta.lost' | paste -sd+ | bc; }

@test "a life: policy, waivers, start, exec, update, stop, each with its fields" {
	local id image policy kinds=start n
	image=$(image_id $IMG)
	policy=$(policy_digest)
	# shellcheck disable=SC2046 # two words
	run hard_run -d --name life $(agent_id a-7) $IMG sleep 1000
	assert_status 0
	id=$(engine inspect --format '{{.Id}}' life)
	engine exec life true
	[ "$AQE_ENGINE" = podman-user ] || engine update --cpus 0.5 life
	remove life
	rows >"$AQE_TMP/rows"
	cat "$AQE_TMP/rows"
	verifies

	# the container's rows, in order
	kinds="start exec"
	[ "$AQE_ENGINE" = podman-user ] || kinds+=" update"
	kinds+=" stop"
	[ "$(jq -rs --arg id "$id" '[.[] | select(.container == $id and .kind != "waiver") | .kind] | join(" ")' "$AQE_TMP/rows")" = "$kinds" ]
	# all of them say who
	n=$(jq -s --arg id "$id" '[.[] | select(.container == $id)] | length' "$AQE_TMP/rows")
	[ "$(jq -s --arg id "$id" --arg image "$image" --arg policy "$policy" '[.[] | select(.container == $id
		and .image == $image and .policy == $policy and .agent_type == "default"
		and .agent_id == (if $ENV.AQE_ENGINE == "docker-remap" then null else "a-7" end))] | length' "$AQE_TMP/rows")" = "$n" ]
	# the policy once, before all else
	[ "$(jq -rs --arg policy "$policy" '.[0] | .kind, .action, .meta.mode, (.policy == $policy), .meta.files' "$AQE_TMP/rows" | xargs)" = \
		"policy changed enforce true $POLICY" ]
	[ "$(jq -s '[.[] | select(.kind == "policy")] | length' "$AQE_TMP/rows")" = 1 ]
	# what the start was
	run jq -r 'select(.kind == "start") | .action, .method, .meta.command, .meta.engine, .meta.imageName, (.meta.changes > 0), (.meta.changed | join(","))' "$AQE_TMP/rows"
	assert_line changed
	assert_line start
	assert_line sleep
	assert_line "${AQE_ENGINE%%-*}"
	assert_match "^$IMG"
	assert_match '(^|,)capabilities(,|$)'
	assert_match '(^|,)seccomp(,|$)'
	# exec, update, stop
	[ "$(jq -r 'select(.kind == "exec") | .action, .method, .meta.command, .meta.uid' "$AQE_TMP/rows" | xargs)" = "changed exec true 1000" ]
	[ "$AQE_ENGINE" = podman-user ] || [ "$(jq -r 'select(.kind == "update") | .meta.resources.cpu.quota' "$AQE_TMP/rows")" = 50000 ]
	[ "$(jq -r 'select(.kind == "stop") | (.duration_ns > 0), .action' "$AQE_TMP/rows" | xargs)" = "true allowed" ]
}

@test "a row for each waiver that was used, none for one that was not" {
	local want
	run hard_run --rm $IMG true
	assert_status 0
	case $AQE_ENGINE in
	podman-user) want="cpu_limit memory_limit pids_limit" ;;
	docker) want=rootless ;;
	*) want= ;;
	esac
	is_cgroup_v2 && [ "$AQE_ENGINE" = podman-user ] && want=
	[ "$(rows --kind waiver | jq -rs '[.[].waiver] | sort | join(" ")')" = "$want" ]
	[ -z "$want" ] || [ "$(rows --kind waiver | jq -rs '.[0] | .reason, .action, .meta.owner, .meta.expires' | xargs)" = \
		"test allowed tests@example.org 2099-12-31T00:00:00Z" ]
	# shellcheck disable=SC2046
	write_policy $(engine_waivers) waive=digest waive=readonly_rootfs
	run hard_run --rm --read-only $IMG_OTHER true
	assert_status 0
	[ "$(count '.kind == "waiver" and .waiver == "digest"')" = 1 ]
	[ "$(count '.kind == "waiver" and .waiver == "readonly_rootfs"')" = 0 ]
}

twice() {
	run hard_run --rm $IMG true
	assert_status 0 || return 1
	run hard_run --rm $IMG true
	assert_status 0
}

@test "a policy has a row when it is not the last one" {
	twice
	[ "$(count '.kind == "policy"')" = 1 ]
	usual_policy jq='.agents = {default: {pids: 99}}'
	twice
	[ "$(rows --kind policy | jq -r .policy | tail -n 1)" = "$(policy_digest)" ]
	usual_policy
	run hard_run --rm $IMG true
	[ "$(count '.kind == "policy"')" = 3 ]
}

@test "a refusal: its property, all its findings, the text the user saw" {
	run hard_run --rm --name no --cap-add SYS_ADMIN -v /etc:/h $IMG true
	assert_status "$(refused_status run)"
	remove no >/dev/null 2>&1 || :
	rows --kind refusal >"$AQE_TMP/rows"
	[ "$(jq -s length "$AQE_TMP/rows")" = 1 ]
	run jq -r '.action, .method, .rule, .agent_type, .image, .policy, .reason, (.meta.findings[] | "finding " + .property)' "$AQE_TMP/rows"
	assert_line refused
	assert_line create
	assert_line capabilities
	assert_line default
	assert_line "$(image_id $IMG)"
	assert_line "$(policy_digest)"
	assert_match '^refused: capabilities at /process/capabilities'
	assert_line "finding capabilities"
	assert_line "finding mounts"
	[ "$(count '.kind == "start"')" = 0 ]
	verifies
}

@test "a refused exec and a refused update" {
	run hard_run -d --name life $IMG sleep 1000
	run engine exec --privileged life true
	assert_status "$(refused_status exec)"
	run jq -r '.method, .rule, .agent_type' <<<"$(rows --kind refusal)"
	assert_line exec
	assert_match '^(privileged|capabilities)$'
	assert_line default
	if [ "$AQE_ENGINE" != podman-user ]; then
		run engine update --memory 8g --memory-swap 8g life
		[ "$status" != 0 ]
		[ "$(rows --kind refusal | jq -r '.method, .rule' | tail -n 2 | xargs)" = "update memory_limit" ]
	fi
	remove life
	verifies
}

@test "no secret of an environment or a command line is in the log" {
	local secret="s3cr3t-$RANDOM$RANDOM" id extra=()
	[[ $AQE_ENGINE != podman* ]] || extra=(--annotation "note=$secret")
	run hard_run -d --name life -e "TOKEN=$secret" -e "LD_PRELOAD=/$secret" -e "AQE_AGENT_TYPE=$secret" -e "AQE_AGENT_ID=$secret" \
		--label "l=$secret" "${extra[@]}" $IMG sh -c "sleep 1000 # $secret"
	assert_status 0
	id=$(engine inspect --format '{{.Id}}' life)
	engine exec -e "TOKEN=$secret" life sh -c "true $secret"
	run engine exec -e "TOKEN=$secret" life "/$secret/sh"
	run engine exec --privileged -e "TOKEN=$secret" life sh -c "true $secret"
	assert_status "$(refused_status exec)"
	run hard_run --rm --name no --cap-add SYS_ADMIN -e "TOKEN=$secret" -e "LD_PRELOAD=$secret" $IMG sh -c "true $secret"
	assert_status "$(refused_status run)"
	remove life
	remove no >/dev/null 2>&1 || :
	# as it lies there, and when it has been taken over
	lacks grep -raF "$secret" "$(log_dir)"
	grep -raqF "$id" "$(log_dir)"
	rows >"$AQE_TMP/rows"
	lacks grep -F "$secret" "$AQE_TMP/rows"
	lacks grep -raF "$secret" "$(log_dir)"
	grep -raqF "$id" "$(log_dir)/audit.db" "$(log_dir)/audit.db-wal"
	[ "$(count '.kind == "start"')" = 1 ]
	[ "$(count '.kind == "exec"')" = 2 ]
	[ "$(count '.kind == "refusal"')" = 2 ]
}

@test "disk full: refused in the engine's words; a gap is counted when there is space again" {
	small_log
	run hard_run --rm $IMG true
	assert_status 0
	fill
	not_recorded "disk full"
	not_recorded "disk full"
	rm "$(log_dir)/.filler"
	recorded_again
	[ "$(gap_of)" = 2 ]
}

@test "read-only, and open to others: refused" {
	small_log
	run hard_run --rm $IMG true
	assert_status 0
	mount -o remount,ro "$(log_dir)"
	not_recorded "read-only"
	mount -o remount,rw "$(log_dir)"
	chmod 755 "$(log_dir)"
	not_recorded "0700"
	chmod 700 "$(log_dir)"
	recorded_again
	[ "$(gap_of)" = 2 ]
}

@test "locked by another process: refused in bounded time; stopping and removing goes on" {
	local holder t0=$SECONDS
	run hard_run -d --name life $IMG sleep 1000
	assert_status 0
	(exec 9<"$(log_dir)/spool" && flock 9 && exec sleep 60) 3>&- 4>&- &
	holder=$!
	wait_for sh -c "! flock -n '$(log_dir)/spool' true"
	not_recorded "locked by another process"
	[ $((SECONDS - t0)) -lt 40 ]
	run remove life
	assert_status 0
	[ -z "$(engine ps -aq)" ]
	kill "$holder"
	wait "$holder" 2>/dev/null || :
	recorded_again
	[ "$(gap_of)" -ge 1 ]
}

@test "optional: nothing is refused; off: nothing is written" {
	small_log
	fill
	usual_policy jq='.audit = {mode: "optional"}'
	run hard_run --rm $IMG echo ran-inside
	assert_status 0
	umount "$(log_dir)"
	fresh_log
	usual_policy jq='.audit = {mode: "off"}'
	run hard_run --rm $IMG echo ran-inside
	assert_status 0
	[ ! -e "$(log_dir)" ]
}
