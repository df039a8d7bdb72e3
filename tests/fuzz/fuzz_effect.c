/* SPDX-License-Identifier: MIT */
/* What the kernel shows, but any bytes: the first says which reader. Nothing a reader accepts is
 * over its limits, and a mount that is accepted has a path to judge. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "hardening/effect_parse.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mounts(char *text)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct hard_fx_mount *list = NULL;
	size_t n = 0, i;

	if (!a || hard_fx_mounts_parse(a, text, &list, &n, NULL) < 0)
		return;
	assert(n <= HARD_FX_MOUNTS_MAX);
	for (i = 0; i < n; i++) {
		assert(list[i].point[0] == '/' && list[i].root && list[i].fstype && list[i].source);
		(void)hard_fx_option(list[i].super, "size", NULL);
	}
}

static void maps(const char *text)
{
	struct hard_idmap map[HARD_IDMAP_MAX];
	uint64_t out;
	size_t n = 0, m;

	if (hard_fx_idmap_parse(text, map, HARD_IDMAP_MAX, &n, NULL) < 0)
		return;
	m = hard_fx_idmap_normalise(map, n);
	assert(m <= n && hard_fx_idmap_normalise(map, m) == m);
	(void)hard_fx_idmap_out(map, m, 1000, &out);
}

static void rest(char which, char *text)
{
	struct hard_fx_status st;
	struct hard_fx_cgroup groups[HARD_FX_CGROUP_MAX];
	char names[HARD_FX_NETDEV_MAX][HARD_FX_NAME_MAX], line[HARD_FX_DEVLINE_MAX];
	uint64_t a, b;
	size_t n = 0;

	if (which == 's' && hard_fx_status_parse(text, &st, NULL) == 0)
		assert(st.n_groups <= HARD_FX_GROUPS_MAX && st.n_nspid > 0);
	if (which == 'c' && hard_fx_cgroups_parse(text, groups, HARD_FX_CGROUP_MAX, &n, NULL) == 0)
		assert(n <= HARD_FX_CGROUP_MAX);
	if (which == 'n' && hard_fx_netdev_parse(text, names, HARD_FX_NETDEV_MAX, &n, NULL) == 0)
		assert(n <= HARD_FX_NETDEV_MAX);
	if (which == 'r' || which == '6')
		(void)!hard_fx_route_first(text, which == '6', names[0], NULL);
	if (which == 'd' && hard_fx_devices_wide(text, line, NULL) == 1)
		assert(strlen(line) < sizeof(line));
	if (which == 'l' && hard_fx_limit_parse(text, &a, NULL) == 0)
		assert(a == HARD_FX_UNLIMITED || a <= INT64_MAX);
	if (which == 'p' && hard_fx_cpumax_parse(text, &a, &b, NULL) == 0)
		assert(b > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);

	if (size < 2 || aqe_buf_add(&b, data + 1, size - 1) < 0)
		return 0;
	if (data[0] == 'm')
		mounts(b.p);
	else if (data[0] == 'u')
		maps(b.p);
	else
		rest((char)data[0], b.p);
	return 0;
}
