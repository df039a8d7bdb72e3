#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A policy that is missing, broken or unsafe: every start is refused with its path and line, while
# what already runs can be stopped, removed and looked at.

bats_require_minimum_version 1.5.0
load env
load bundle

setup_file() {
	low_setup
	export SHIM
}
teardown() {
	rm -rf /etc/aqe-shim
	low_sweep
	low_policy
	assert_low_clean
}

# refused_with TEXT...: a start is refused and says all of it
refused_with() {
	local text
	run to_file low create --bundle "$(make_bundle pol)" low-pol
	assert_status 1
	for text in "$@"; do
		assert_has "$text"
	done
	[ ! -e "/run/low-$AQE_LOW/low-pol" ]
}

@test "missing: the path is named" {
	rm -rf /etc/aqe-shim
	refused_with "$POLICY"
	mkdir /etc/aqe-shim
	refused_with "$POLICY"
}

@test "empty, not JSON, comments, duplicate keys: path and line" {
	: >"$POLICY"
	refused_with "$POLICY:1"
	printf '{\n  "version": 1,\n  "mode": enforce\n}\n' >"$POLICY"
	refused_with "$POLICY:3"
	printf '{\n  "version": 1,\n  // so far\n  "mode": "enforce"\n}\n' >"$POLICY"
	refused_with "$POLICY:3"
	printf '{\n  "version": 1,\n  "mode": "enforce",\n  "mode": "observe"\n}\n' >"$POLICY"
	refused_with "$POLICY:4" mode
}

@test "network: a rule that does not load refuses starts, with its line" {
	printf '{\n  "version": 1,\n  "network": { "agents": { "default": {\n    "domains": ["*.com"] } } }\n}\n' >"$POLICY"
	refused_with "$POLICY:4" "'/network/agents/default/domains/0'" "public suffix"
	printf '{\n  "version": 1,\n  "network": { "agents": { "default": {\n    "domain": [] } } }\n}\n' >"$POLICY"
	refused_with "$POLICY:4" "is not a key"
}

@test "unknown key, wrong type, unknown mode, future version: path, line and the key" {
	printf '{\n  "version": 1,\n  "mod": "enforce"\n}\n' >"$POLICY"
	refused_with "$POLICY:3" mod
	printf '{\n  "version": 1,\n  "images": {}\n}\n' >"$POLICY"
	refused_with "$POLICY:3" images
	printf '{\n  "version": 1,\n  "mode": "permissive"\n}\n' >"$POLICY"
	refused_with "$POLICY:3" mode
	printf '{\n  "version": 2\n}\n' >"$POLICY"
	refused_with "$POLICY:2" version
}

@test "a policy without a runtime starts nothing" {
	low_policy jq='del(.runtime)'
	refused_with runtime
}

@test "waivers: unwaivable, without owner, without expiry, expired" {
	write_policy waive=digest waive=privileged
	refused_with "$POLICY:" privileged
	write_policy waive=digest waive=capabilities
	refused_with "$POLICY:" capabilities
	low_policy jq='del(.waivers[].owner)'
	refused_with "$POLICY:" owner
	low_policy jq='del(.waivers[].expires)'
	refused_with "$POLICY:" expires
	low_policy jq='.waivers[].expires = "2020-01-01"'
	refused_with "refused: digest"
}

@test "U31: a waiver at a start ended yesterday, ends today at 00:00, counts until tomorrow" {
	local day
	for day in yesterday today; do
		low_policy jq=".waivers[].expires = \"$(date -u -d "$day" +%F)\""
		refused_with "refused: digest"
	done
	low_policy jq=".waivers[].expires = \"$(date -u -d tomorrow +%F)\""
	run low_cycle "$(make_bundle pol)" low-pol
	assert_status 0
}

@test "U31: with the clock set back no waiver counts" {
	touch -d '+365 days' "$POLICY" # as the policy looks then
	refused_with "refused: digest"
}

@test "a drop-in that is broken names itself; a key twice is an error; a good one counts" {
	mkdir -p /etc/aqe-shim/policy.d
	printf '{\n  "version": 1, "images": [\n}\n' >/etc/aqe-shim/policy.d/20-broken.json
	refused_with /etc/aqe-shim/policy.d/20-broken.json:3
	rm /etc/aqe-shim/policy.d/20-broken.json
	printf '{\n  "version": 1,\n  "mode": "observe"\n}\n' >/etc/aqe-shim/policy.d/30-twice.json
	refused_with /etc/aqe-shim/policy.d/30-twice.json:3 mode
	rm /etc/aqe-shim/policy.d/30-twice.json
	low_policy jq='del(.waivers)'
	echo '{"version": 1, "waivers": [{"property": "digest", "agentType": "default", "reason": "r", "owner": "o", "expires": "2099-12-31"}]}' \
		>/etc/aqe-shim/policy.d/10-waiver.json
	run low_cycle "$(make_bundle pol)" low-pol
	assert_status 0
	# other names are not read
	mv /etc/aqe-shim/policy.d/10-waiver.json /etc/aqe-shim/policy.d/10-waiver.json.off
	refused_with "refused: digest"
}

@test "a policy that others may write, or that is a link, is not trusted" {
	chmod 666 "$POLICY"
	refused_with "$POLICY"
	chmod 644 "$POLICY"
	chown "$AQE_UID" "$POLICY"
	refused_with "$POLICY"
	chown 0 "$POLICY"
	mv "$POLICY" /etc/aqe-shim/other
	ln -s other "$POLICY"
	refused_with policy.json
	rm "$POLICY"
	mv /etc/aqe-shim/other "$POLICY"
	chmod 777 /etc/aqe-shim
	refused_with /etc/aqe-shim
	chmod 755 /etc/aqe-shim
	run low_cycle "$(make_bundle pol)" low-pol
	assert_status 0
}

@test "a huge policy is refused, not read for ever" {
	truncate -s 64M "$POLICY"
	refused_with "$POLICY"
}

@test "with a broken policy what runs can still be looked at, stopped and removed" {
	local dir
	dir=$(make_bundle pol '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-pol
	low start low-pol
	echo broken >"$POLICY"
	run low state low-pol
	assert_status 0
	[ "$(jq -r .status <<<"$output")" = running ]
	run low exec low-pol /bin/probe
	[ "$status" != 0 ] || assert_line "CapEff: 0000000000000000"
	run low kill low-pol KILL
	assert_status 0
	wait_for stopped low-pol
	run low delete low-pol
	assert_status 0
	[ -z "$output" ]
}

@test "a container keeps the runtime it was created with" {
	local dir other=runc
	[ "$AQE_LOW" = crun ] || other=crun
	dir=$(make_bundle pol '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-pol
	low start low-pol
	low_policy low=$other
	run low state low-pol
	assert_status 0
	run low delete --force low-pol
	assert_status 0
	assert_low_clean
}

@test "verify mode refuses what enforce would rewrite, and changes nothing" {
	low_policy mode=verify
	refused_with "refused: capabilities"
	# what the rewrite makes passes
	low_policy
	low_create "$(make_bundle pol)" low-pol
	cp /run/aqe-shim/low-pol*/config.json "$AQE_TMP/low/hard.json"
	low delete --force low-pol
	low_policy mode=verify
	cp "$AQE_TMP/low/hard.json" "$AQE_TMP/low/pol/config.json"
	run low_cycle "$AQE_TMP/low/pol" low-pol
	assert_status 0
	assert_line "CapEff: 0000000000000000"
}

@test "observe mode starts anything and says on no stream what it thinks" {
	low_policy mode=observe
	run low_cycle "$(make_bundle pol '.process.capabilities.bounding += ["CAP_SYS_ADMIN"]')" low-pol
	assert_status 0
	[ "${lines[0]}" = probe-begin ]
	[ "${lines[-1]}" = probe-end ]
	assert_line "uid=0 gid=0"
	# but writes it down
	run "${AQE_SHIM%/*}/aqe" audit list --since all --container low-pol --format jsonl
	[ "$(jq -rs 'map(select(.method == "create")) | last | .meta.would' <<<"$output")" = refuse ]
	# a broken policy is no observe mode
	echo '{"version": 1, "mode": "observe", }' >"$POLICY"
	refused_with "$POLICY:1"
}

@test "the agent's user of the policy" {
	low_policy jq='.user = {uid: 4321, gid: 4322}'
	run low_cycle "$(make_bundle pol)" low-pol
	assert_status 0
	assert_line "uid=4321 gid=4322"
	low_policy jq='.user = {uid: 0, gid: 0}'
	refused_with "$POLICY:"
}
