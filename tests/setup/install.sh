#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the Debian packages the project needs: install.sh [--for build|demo|test|bench]
# Idempotent and silent; touches the network only when a package is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
level="test"
while [ $# -gt 0 ]; do
	case $1 in
	--for)
		[ $# -ge 2 ] || { echo "install.sh: --for needs build, demo, test or bench" >&2; exit 2; }
		level=$2
		shift 2
		;;
	--for=*)
		level=${1#--for=}
		shift
		;;
	*)
		echo "install.sh: unknown argument '$1'" >&2
		exit 2
		;;
	esac
done
case $level in
build) levels="build" ;;
demo) levels="build demo" ;;
test) levels="build demo test" ;;
bench) levels="bench" ;;
*)
	echo "install.sh: unknown level '$level': build, demo, test or bench" >&2
	exit 2
	;;
esac

wanted() {
	local lv pkg program
	while read -r lv pkg program; do
		[ -z "$program" ] || ! command -v "$program" >/dev/null || continue
		case " $levels " in
		*" $lv "*) echo "$pkg" ;;
		esac
	done < <(grep -v '^#' "$here/packages.txt")
}

missing() {
	local pkg
	for pkg in $(wanted); do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$pkg" 2>&1)" = installed ] || echo "$pkg"
	done
}

command -v dpkg-query >/dev/null || {
	echo "install.sh: this is not a Debian system; install by hand: $(wanted | xargs)" >&2
	exit 1
}
need=$(missing | xargs)
[ -n "$need" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "install.sh: not root; please install: $need" >&2
	exit 1
fi

log=$(mktemp)
policy_rc=/usr/sbin/policy-rc.d
made_policy=
cleanup() {
	[ -z "$made_policy" ] || rm -f "$policy_rc"
	rm -f "$log"
}
trap cleanup EXIT
# docker.io and containerd would start their daemons on installation; the tests run their own.
if [ ! -e "$policy_rc" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy_rc"
	chmod 755 "$policy_rc"
	made_policy=1
fi
echo "installing: $need"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of package names
{ apt-get -q -o DPkg::Lock::Timeout=120 update &&
	apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $need; } >"$log" 2>&1 || {
	tail -n 20 "$log" >&2
	echo "install.sh: could not install: $need" >&2
	exit 1
}
