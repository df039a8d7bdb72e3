#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real engines: run_integration.sh [--one ENGINE LOW FILE | --plan | FILTER]
# Runs the bats files of the plan in lanes side by side, each lane in a sandbox of its own
# (tests/setup/sandbox.sh). Prints TAP lines and last "integration: N passed, N failed".
# AQE_SHIM overrides the binary, AQE_TESTS_MUST_RUN=1 makes a skip a failure.
# In a run of the whole plan a row with a failure is looked at again (second_look).
set -u

cd "$(dirname "$0")/.." || exit 1
AQE_SHIM=$(realpath "${AQE_SHIM-build/release/aqe-shim}")
export AQE_SHIM

# lane  engine  low  file  [only tests that match]. A lane shares one sandbox, so an engine is
# started once a lane.
rows=$(
	cat <<'P'
1 podman-root crun common
1 podman-root crun podman
1 podman-root runc common
1 podman-root runc podman ^(pod|health)
1 podman-user crun common
1 podman-user crun podman
1 podman-user runc common
1 podman-user runc podman ^(pod|health)
1 podman-root crun restarts ^(U47|supervise)
1 podman-user crun restarts ^U47
1 podman-root crun observe
1 podman-user crun observe
1 podman-root crun audit
1 podman-user crun audit
1 podman-root crun supervise
1 podman-root runc supervise ^bundle
1 podman-root crun gate
1 podman-user crun gate
1 podman-root crun documents
1 podman-user crun documents
2 docker runc common
2 docker crun common
2 docker runc docker
2 docker runc restarts
2 docker runc observe
2 docker runc gate
2 docker runc audit
2 docker-remap runc audit
2 podman-root crun auditlow
2 podman-root runc auditlow
2 docker runc documents
2 docker-remap runc common
2 docker-remap crun common
2 docker-remap runc docker
2 docker-remap runc documents
2 none - audit_cli
2 podman-root crun binary
2 podman-root crun lowlevel
2 podman-root runc lowlevel
2 podman-root crun policy
2 podman-root crun state
2 podman-root crun differential
2 podman-root crun kill
2 podman-root crun sandbox
2 podman-root runc sandbox
2 podman-root runc kill
2 podman-root crun effect
2 podman-root runc effect
2 none - upstream_proxy
1 none - egress
1 none - egress_shared
1 podman-root crun egress_containers
1 podman-root crun egress_many
1 podman-user crun egress_containers
1 podman-root runc egress_containers ^(curl|nothing|the service)
2 docker runc egress_containers ^(curl|nothing|the service)
2 docker-remap runc egress_containers
1 podman-root crun gateway
1 podman-user crun gateway ^(a request|bodies|another|the companion)
2 docker runc gateway ^(a request|bodies|another)
1 podman-root crun sandbox_engines ^(the whole|stop gives|limits|a refusal|CPU|top)
1 podman-user crun sandbox_engines ^(the whole|in the foreground)
2 docker runc sandbox_engines
1 podman-root crun agent_image ^(buildah|the same)
2 docker-remap runc agent_image ^docker-compose
1 podman-root crun sandbox_load
1 none - cache
1 podman-root crun cache_containers
2 docker-remap runc cache_containers ^(a miss|another)
1 none - policy_serve
P
)

# Inside a sandbox: the lane's rows are in AQE_PLAN. TAP on stdout, one prefix a file.
lane() {
	local engine low file only
	while read -r _ engine low file only; do
		[ -f "tests/integration/$file.bats" ] || continue
		AQE_ENGINE=$engine AQE_LOW=$low timeout -k 10 900 bats --timing --formatter tap --filter "${only:-.}" \
			"tests/integration/$file.bats" </dev/null 2>&1 |
			sed -uE "s/^((not )?ok )[0-9]+ /\1$engine $low $file: /; /^[0-9]+\.\.[0-9]+$/d"
	done <<<"$AQE_PLAN"
	AQE_ENGINE=none bats --timing --formatter tap tests/integration/leftovers.bats </dev/null 2>&1 |
		sed -uE "s/^((not )?ok )[0-9]+ /\1leftovers: /; /^[0-9]+\.\.[0-9]+$/d"
}

# Engines, network and terminals of a loaded machine also fail on their own. So each row in which a
# test failed runs twice more, alone and in a fresh sandbox: only what passes both times, with
# nothing left behind, is "# flaky" and not a failure. Never more than 3 rows: that is no accident.
# second_look ALL-LINES: the rows that hold, as "ENGINE LOW FILE".
second_look() {
	local row found n
	mapfile -t found < <(sed -nE 's/^not ok ([a-z-]+ [a-z-]+ [a-z_]+): .*/\1/p' <<<"$1" | sort -u)
	[ "${#found[@]}" -le 3 ] || return 0
	for row in "${found[@]}"; do
		for n in 1 2; do
			AQE_PLAN=$(grep -m 1 -E "^[0-9] $row( |\$)" <<<"$rows") tests/setup/sandbox.sh "$0" --lane >"$out/again" 2>&1
			cat "$out/again" >&2
			if grep -qE '^not ok ' "$out/again" || ! grep -qE "^ok $row: " "$out/again"; then
				continue 2
			fi
		done
		echo "$row"
	done
}

case ${1-} in
--lane)
	lane
	exit
	;;
--plan)
	echo "$rows"
	exit
	;;
--one) rows="1 $2 $3 $4" ;;
'') whole=1 ;;
*) rows=$(grep -E -- "$1" <<<"$rows") ;;
esac

out=build/test/lanes.$$ # stays for a look when this is stopped half way
mkdir -p "$out"
pids=()
stop() {
	[ "${#pids[@]}" = 0 ] || kill "${pids[@]}" 2>/dev/null
	wait
}
trap stop EXIT
trap 'exit 130' INT TERM
if [ ! -x "$AQE_SHIM" ]; then
	echo "not ok integration: no binary at $AQE_SHIM"
	echo "integration: 0 passed, 1 failed"
	exit 1
fi
for n in 1 2; do
	AQE_PLAN=$(grep "^$n " <<<"$rows") || continue
	AQE_PLAN=$AQE_PLAN tests/setup/sandbox.sh "$0" --lane >"$out/lane$n" 2>&1 &
	pids+=($!)
done
for p in "${pids[@]}"; do
	wait "$p"
done
pids=()
cat "$out"/lane*
all=$(cat "$out"/lane*)
if [ -n "${whole-}" ]; then
	while read -r row; do
		awk -v row="not ok $row: " 'index($0, row) == 1 { on = 1; sub(/^not ok/, "# flaky:"); print; next }
			/^#/ { if (on) print; next } { on = 0 }' <<<"$all"
		all=$(sed -E "s/^not ok $row: /ok $row: /" <<<"$all")
	done < <(second_look "$all" 2>"$out/second")
	[ ! -s "$out/second" ] || sed 's/^/again: /' "$out/second"
fi
rm -r "$out"
pass=$(grep -cE '^ok ' <<<"$all")
fail=$(grep -cE '^not ok ' <<<"$all")
skipped=$(grep -cE '^ok .* # skip' <<<"$all")
if [ "$skipped" != 0 ]; then
	pass=$((pass - skipped))
	echo "# integration: $skipped skipped"
	[ "${AQE_TESTS_MUST_RUN-}" != 1 ] || fail=$((fail + skipped))
fi
# host's own null device: crun with a user namespace may change its owner
if [ "$(stat -c '%U:%G %a' /dev/null)" = "root:root 666" ]; then
	pass=$((pass + 1))
else
	chown root:root /dev/null
	chmod 666 /dev/null
	echo "not ok integration: the owner of /dev/null changed (put back)"
	fail=$((fail + 1))
fi
echo "integration: $pass passed, $fail failed"
[ "$fail" = 0 ]
