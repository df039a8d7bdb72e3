#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The state folder full, read-only, unsafe or missing; the bundle's file system full: a refusal, no
# container, and the next start works again.

bats_require_minimum_version 1.5.0
load env
load bundle

setup_file() {
	low_setup
	export SHIM
}
setup() {
	rm -rf /run/aqe-shim
	mkdir -m 700 /run/aqe-shim
}
teardown() {
	low_sweep
	chattr -i /run/aqe-shim 2>/dev/null || :
	while mountpoint -q /run/aqe-shim; do umount /run/aqe-shim; done
	rm -rf /run/aqe-shim
}

refused_then_fine() {
	run to_file low create --bundle "$(make_bundle st)" low-st
	assert_status 1
	[ -n "$output" ]
	assert_match 'refused: (state folder|private bundle|container)'
	[ ! -e "/run/low-$AQE_LOW/low-st" ]
}

fine_again() {
	run low_cycle "$(make_bundle st)" low-st
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	assert_low_clean
}

@test "missing: it is made, and only root may look into it" {
	rm -rf /run/aqe-shim
	fine_again
	[ "$(stat -c '%u:%g %a' /run/aqe-shim)" = "0:0 700" ]
}

@test "full from the start, and full after the first kilobytes" {
	local size
	for size in 4k 8k 12k 16k 20k; do
		mount -t tmpfs -o "mode=700,size=$size" full /run/aqe-shim
		head -c 4096 /dev/zero >/run/aqe-shim/.filler 2>/dev/null || :
		run to_file low create --bundle "$(make_bundle st)" low-st
		if [ "$status" != 0 ]; then
			assert_status 1
			[ -n "$output" ]
			# the engine's clean-up, for when the low-level runtime was already at work
			low delete --force low-st >/dev/null 2>&1
			[ ! -e "/run/low-$AQE_LOW/low-st" ]
			[ -z "$(find /run/aqe-shim -mindepth 1 -maxdepth 1 -type d ! -name '.*')" ] || {
				find /run/aqe-shim -ls
				return 1
			}
		else
			low delete --force low-st
		fi
		umount /run/aqe-shim
	done
	fine_again
}

@test "no inode left" {
	mount -t tmpfs -o mode=700,nr_inodes=2 full /run/aqe-shim
	refused_then_fine
	umount /run/aqe-shim
	fine_again
}

@test "read-only" {
	mount -t tmpfs -o mode=700 ro /run/aqe-shim
	mount -o remount,ro /run/aqe-shim
	refused_then_fine
	umount /run/aqe-shim
	fine_again
}

@test "somebody else's, or open to others, or a link: refused" {
	chmod 777 /run/aqe-shim
	refused_then_fine
	chmod 700 /run/aqe-shim
	chown "$AQE_UID" /run/aqe-shim
	refused_then_fine
	rmdir /run/aqe-shim
	ln -s /run/elsewhere /run/aqe-shim
	mkdir -p /run/elsewhere
	refused_then_fine
	rm /run/aqe-shim
	rmdir /run/elsewhere
	echo file >/run/aqe-shim
	refused_then_fine
	rm /run/aqe-shim
	fine_again
}

@test "a record that somebody damaged: the container can still be removed" {
	local dir rec
	dir=$(make_bundle st '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-st
	low start low-st
	rec=$(find /run/aqe-shim -name record.json)
	[ -n "$rec" ]
	echo '{"broken' >"$rec"
	run low exec low-st /bin/probe
	[ "$status" != 0 ]
	run low delete --force low-st
	assert_status 0
	assert_low_clean
	fine_again
}

@test "the record is gone: start refuses, delete works" {
	local dir
	dir=$(make_bundle st '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-st
	rm -rf /run/aqe-shim/*
	run low start low-st
	assert_status 1
	[ -n "$output" ]
	run low delete --force low-st
	assert_status 0
	assert_low_clean
	fine_again
}

@test "the same id twice: the second create fails, the first lives on" {
	local dir
	dir=$(make_bundle st '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-st
	low start low-st
	run to_file low create --bundle "$dir" low-st
	[ "$status" != 0 ]
	run low state low-st
	assert_status 0
	[ "$(jq -r .status <<<"$output")" = running ]
	run low exec low-st /bin/probe
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	run low delete --force low-st
	assert_status 0
	assert_low_clean
}
