#!/bin/sh
# SPDX-License-Identifier: MIT
# Lists the containers that need the runtime about to be removed, and fails if there are any:
# an engine remembers a container's runtime, and without it every later command on it fails.
# dependents.sh /usr/local/bin/aqe-shim
set -u

binary=${1:-/usr/local/bin/aqe-shim}
name=$(basename "$binary")
found=$(
	if command -v podman >/dev/null 2>&1; then
		podman ps -aq 2>/dev/null | while read -r id; do
			podman inspect --format 'podman {{.Id}} {{.Name}} {{.OCIRuntime}}' "$id" 2>/dev/null
		done
	fi
	if command -v docker >/dev/null 2>&1; then
		# docker knows runtimes by the name in daemon.json; ours may have any
		names=$(docker info --format '{{range $k, $v := .Runtimes}}{{$k}} {{$v.Path}}{{"\n"}}{{end}}' 2>/dev/null |
			awk -v p="$binary" '$2 == p { print $1 }')
		docker ps -aq --no-trunc 2>/dev/null | while read -r id; do
			line=$(docker inspect --format 'docker {{.Id}} {{.Name}} {{.HostConfig.Runtime}}' "$id" 2>/dev/null)
			for n in $names; do
				[ "${line##* }" != "$n" ] || echo "${line% *} $name"
			done
		done
	fi
	for d in /run/aqe-shim /run/user/*/aqe-shim; do
		[ -d "$d" ] || continue
		find "$d" -mindepth 1 -maxdepth 1 -type d ! -name '.*' | sed "s|^|state |; s|\$| - $name|"
	done
)
# also podman's full path form
found=$(printf '%s\n' "$found" | awk -v n="$name" -v p="$binary" '$NF == n || $NF == p')
[ -n "$found" ] || exit 0
{
	echo "containers that need $binary:"
	printf '%s\n' "$found" | sed 's/^/  /'
	echo "remove them first, or: make uninstall FORCE=1"
} >&2
exit 1
