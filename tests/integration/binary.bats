#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The release binary itself: hardening flags, what it links, installing and removing it.

bats_require_minimum_version 1.5.0
load env

@test "position independent, relocations read-only and bound at once, no executable stack" {
	run readelf -hW "$AQE_SHIM"
	assert_match 'Type: +DYN '
	run readelf -lW "$AQE_SHIM"
	assert_match 'GNU_RELRO'
	assert_match 'GNU_STACK +0x0+ 0x0+ 0x0+ 0x0+ 0x0+ RW '
	# no segment both writable and executable
	run bash -c "readelf -lW '$AQE_SHIM' | grep -E '^ +(LOAD|GNU_STACK)' | grep -E 'RWE'"
	[ -z "$output" ]
	run readelf -dW "$AQE_SHIM"
	assert_match '\(FLAGS_1\).*NOW.*PIE|\(FLAGS\).*BIND_NOW'
}

@test "what runs before libc calls nothing of it" {
	local o
	[ "$(uname -m)" = x86_64 ] || return 0
	run bash -c "readelf -hW '$AQE_SHIM' | sed -n 's/.*Entry point address: *//p'"
	[ "$((output))" = "$((0x$(nm "$AQE_SHIM" | awk '$3 == "shim_entry" { print $1 }')))" ]
	for o in early entry; do
		run bash -c "nm -u build/release/shim/$o.o | awk '{ print \$2 }' | grep -vE '^(shim_early_.*|_start|__init_array_start|__bss_start)\$'"
		[ -z "$output" ]
	done
	# no table with pointers either: nothing is relocated yet
	run bash -c "readelf -rW build/release/shim/early.o build/release/shim/entry.o | grep -E 'section .\.rela\.(data|rodata|init)'"
	[ -z "$output" ]
}

@test "statically linked: nothing of the engine's environment can be loaded into it" {
	run readelf -lW "$AQE_SHIM"
	refute_has INTERP
	run readelf -dW "$AQE_SHIM"
	refute_has NEEDED
	refute_has RPATH
	refute_has RUNPATH
}

@test "no libcurl, hiredis, libarchive, no foreign JSON reader in it" {
	local s
	for s in curl_easy_init redisConnect archive_read_new yajl_tree_parse json_tokener_parse; do
		run bash -c "nm -a '$AQE_SHIM' 2>/dev/null | grep -w $s; strings -a '$AQE_SHIM' | grep -cw $s"
		assert_line 0
	done
}

@test "stack protector and fortified calls are in it" {
	run bash -c "nm -a '$AQE_SHIM' | grep -cE '__stack_chk_fail|__(memcpy|snprintf|read|vsnprintf|vfprintf|fprintf)_chk'"
	[ "$output" -ge 3 ]
}

@test "small, and quick to say who it is" {
	[ "$(stat -c %s "$AQE_SHIM")" -lt $((8 << 20)) ]
	run "$AQE_SHIM" --version
	assert_status 0
}

@test "no path of the build machine in it" {
	run bash -c "strings -a '$AQE_SHIM' | grep -F \"$PWD\""
	# debug information may name the build folder; the loaded part may not
	objcopy --strip-debug "$AQE_SHIM" "$AQE_TMP/stripped"
	run bash -c "strings -a '$AQE_TMP/stripped' | grep -cF \"$PWD\""
	assert_line 0
}

@test "install writes below DESTDIR only, uninstall removes exactly that" {
	local d=$AQE_TMP/destdir
	make --no-print-directory -s install DESTDIR="$d" PREFIX=/usr
	[ -x "$d/usr/bin/aqe-shim" ]
	cmp "$d/usr/bin/aqe-shim" build/release/aqe-shim
	touch "$d/usr/bin/other"
	make --no-print-directory -s uninstall DESTDIR="$d" PREFIX=/usr
	[ "$(find "$d" ! -type d)" = "$d/usr/bin/other" ]
}

@test "U06: uninstall lists the containers that need the runtime, and stops" {
	export AQE_ENGINE=podman-root
	engine_start
	# shellcheck disable=SC2046
	shim create --userns=auto --name needs-it $IMG true
	make --no-print-directory -s install PREFIX="$AQE_TMP/prefix"
	run env CONTAINERS_STORAGE_CONF="$AQE_TMP/storage.conf" make --no-print-directory -s uninstall PREFIX="$AQE_TMP/prefix"
	[ "$status" != 0 ]
	assert_has needs-it
	assert_has FORCE=1
	[ -x "$AQE_TMP/prefix/bin/aqe-shim" ]
	run env CONTAINERS_STORAGE_CONF="$AQE_TMP/storage.conf" make --no-print-directory -s uninstall PREFIX="$AQE_TMP/prefix" FORCE=1
	assert_status 0
	[ ! -e "$AQE_TMP/prefix/bin/aqe-shim" ]
	engine rm -f needs-it
	make --no-print-directory -s install PREFIX="$AQE_TMP/prefix"
	run env CONTAINERS_STORAGE_CONF="$AQE_TMP/storage.conf" make --no-print-directory -s uninstall PREFIX="$AQE_TMP/prefix"
	assert_status 0
}

@test "U07: as the default runtime, an unmarked container has one explicit outcome" {
	export AQE_ENGINE=podman-root
	engine_start
	usual_policy jq='.images[].types = ["qe-coverage-analyzer", "default"]'
	run hard_run --rm $IMG probe
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	usual_policy jq='.images[].types = ["qe-coverage-analyzer", "default"] | .unmarked = "refuse"'
	run hard_run --rm $IMG echo ran-inside
	assert_status 126
	refute_has ran-inside
	assert_has "$POLICY"
	run hard_run --rm --annotation io.aqe.agent-type=qe-coverage-analyzer $IMG echo ran-inside
	assert_status 0
	assert_line ran-inside
	usual_policy
	engine_clean
}
