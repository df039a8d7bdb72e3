/* SPDX-License-Identifier: MIT */
#include "hardening/inspect_in.h"

#include <inttypes.h>
#include <string.h>

#include "shim/core/text.h"

#define WORDS(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

/* ---- namespaces (R16) ---- */

/* How each engine says "a new namespace of its own". */
static const struct {
	const char *pointer;
	enum hard_prop prop;
	const char *const *podman, *const *docker; /* NULL: the engine has no such member */
} modes[] = {
	{ "/HostConfig/PidMode", HARD_NAMESPACES, WORDS("private", ""), WORDS("") },
	{ "/HostConfig/IpcMode", HARD_NAMESPACES, WORDS("shareable", "private", "none"),
	  WORDS("private", "none", "shareable") },
	{ "/HostConfig/UTSMode", HARD_NAMESPACES, WORDS("private", ""), WORDS("") },
	/* none on cgroup v1 from either engine, so the host's is no finding */
	{ "/HostConfig/CgroupMode", HARD_NAMESPACES, WORDS("private", "host", ""), NULL },
	{ "/HostConfig/CgroupnsMode", HARD_NAMESPACES, NULL, WORDS("private", "host", "") },
	{ "/HostConfig/NetworkMode", HARD_NETWORK, WORDS("none"), WORDS("none") },
};

static void check_modes(struct hard_inspector *i)
{
	for (size_t k = 0; k < AQE_COUNT(modes); k++) {
		const char *const *words = i->podman ? modes[k].podman : modes[k].docker;
		const char *wanted;
		const struct aqe_json *mode;

		if (!words)
			continue;
		wanted = aqe_arena_fmt(i->v.r->arena, "\"%s\"", words[0]);
		mode = hard_inspect_need(i, modes[k].prop, modes[k].pointer, wanted);
		if (mode && !aqe_str_in(aqe_json_str(mode), words))
			hard_report_fail(i->v.r, modes[k].prop, mode, NULL, wanted, "%s",
					 hard_verify_quote(&i->v, aqe_json_str(mode)));
	}
	hard_inspect_empty(i, HARD_NAMESPACES, "/Pod", "a container outside pods");
	hard_inspect_empty(i, HARD_NAMESPACES, "/IsInfra", "false");
}

/* ---- network ---- */

static void check_endpoints(struct hard_inspector *i)
{
	const struct aqe_json *list = hard_inspect_get(i, "/NetworkSettings/Networks");

	for (const struct aqe_json *n = list ? list->first : NULL; n; n = n->next)
		if (!aqe_str_eq(n->key, "none"))
			hard_report_fail(i->v.r, HARD_NETWORK, n, NULL, "no network", "%s",
					 hard_verify_quote(&i->v, n->key));
}

static void check_network(struct hard_inspector *i)
{
	static const char *const empty[] = {
		"/HostConfig/PortBindings",
		"/HostConfig/PublishAllPorts",
		"/HostConfig/Links",
		"/Config/MacAddress",
		"/NetworkSettings/Bridge",
		"/NetworkSettings/Gateway",
		"/NetworkSettings/GlobalIPv6Address",
		"/NetworkSettings/IPAddress",
		"/NetworkSettings/IPv6Gateway",
		"/NetworkSettings/LinkLocalIPv6Address",
		"/NetworkSettings/MacAddress",
		"/NetworkSettings/AdditionalMACAddresses",
		"/NetworkSettings/Ports",
		"/NetworkSettings/SecondaryIPAddresses",
		"/NetworkSettings/SecondaryIPv6Addresses",
		"/NetworkSettings/Networks/none/IPAddress",
		"/NetworkSettings/Networks/none/Gateway",
		"/NetworkSettings/Networks/none/MacAddress",
		"/NetworkSettings/Networks/none/GlobalIPv6Address",
	};

	(void)hard_inspect_need(i, HARD_NETWORK, "/NetworkSettings", "no address and no port");
	for (size_t k = 0; k < AQE_COUNT(empty); k++)
		hard_inspect_empty(i, HARD_NETWORK, empty[k], "no network");
	check_endpoints(i);
}

/* ---- user namespace (R15) ---- */

#define IDS_END (UINT64_C(1) << 32)

/* "0:100000:65536" */
static bool read_map(const char *text, struct hard_idmap *ret)
{
	uint64_t *const field[] = { &ret->inside, &ret->outside, &ret->size };

	for (size_t k = 0; k < AQE_COUNT(field); k++) {
		char number[16];
		const size_t n = strcspn(text, ":");

		if (n == 0 || n >= sizeof(number) || (text[n] == ':') != (k < 2))
			return false;
		memcpy(number, text, n);
		number[n] = '\0';
		if (!aqe_parse_u64(number, UINT32_MAX, field[k]))
			return false;
		text += n + (k < 2);
	}
	return ret->size > 0 && ret->inside + ret->size < IDS_END &&
	       ret->outside + ret->size < IDS_END;
}

static bool ranges_meet(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* One side's lines; the id of the container's user lands in *ret_outside (0: nowhere or root). */
static void check_lines(struct hard_inspector *i, const struct aqe_json *list, uint64_t id,
			uint64_t *ret_outside)
{
	struct hard_idmap maps[HARD_IDMAP_MAX];
	size_t n = 0;

	*ret_outside = 0;
	for (const struct aqe_json *l = list->first; l && n < HARD_IDMAP_MAX; l = l->next) {
		struct hard_idmap *m = &maps[n];
		bool overlap = false;

		if (!read_map(aqe_json_str(l), m)) {
			hard_report_fail(i->v.r, HARD_ROOTLESS, l, NULL, "CONTAINER:HOST:SIZE",
					 "%s", hard_verify_quote(&i->v, aqe_json_str(l)));
			continue;
		}
		/* under a rootless engine the numbers count in its own namespace */
		if (!i->ctx.info_rootless && m->outside < HARD_HOST_ID_MIN)
			hard_report_fail(i->v.r, HARD_ROOTLESS, l, NULL, "host ids from 65536 up",
					 "%s", aqe_json_str(l));
		for (size_t k = 0; k < n; k++)
			overlap = overlap ||
				  ranges_meet(maps[k].inside, maps[k].size, m->inside, m->size) ||
				  ranges_meet(maps[k].outside, maps[k].size, m->outside, m->size);
		if (overlap)
			hard_report_fail(i->v.r, HARD_ROOTLESS, l, NULL,
					 "ranges that do not overlap", "%s", aqe_json_str(l));
		if (id >= m->inside && id - m->inside < m->size)
			*ret_outside = m->outside + (id - m->inside);
		n++;
	}
	if (list->len > HARD_IDMAP_MAX)
		hard_report_fail(i->v.r, HARD_ROOTLESS, list, NULL,
				 "at most 340 mappings, the kernel's limit", "%zu", list->len);
}

/* The id of Config.User's uid (`part` 0) or gid (1), or 0. */
static uint64_t user_id(const struct hard_inspector *i, unsigned part)
{
	const char *text = aqe_json_str(hard_inspect_get(i, "/Config/User"));
	char number[16];
	uint64_t id = 0;
	size_t n;

	if (text && part)
		text = strchr(text, ':') ? strchr(text, ':') + 1 : NULL;
	if (!text)
		return 0;
	n = strcspn(text, ":");
	if (n >= sizeof(number))
		return 0;
	memcpy(number, text, n);
	number[n] = '\0';
	return aqe_parse_u64(number, HARD_ID_MAX, &id) ? id : 0;
}

static void check_mappings(struct hard_inspector *i, const struct aqe_json *mode)
{
	static const char *const pointers[] = { "/HostConfig/IDMappings/UidMap",
						"/HostConfig/IDMappings/GidMap" };

	for (unsigned k = 0; k < AQE_COUNT(pointers); k++) {
		const struct aqe_json *list = hard_inspect_get(i, pointers[k]);
		const uint64_t id = user_id(i, k);
		uint64_t outside;

		if (!list || list->len == 0) {
			hard_report_fail(i->v.r, HARD_ROOTLESS, mode, NULL,
					 "mappings of the user namespace", "none in %s",
					 pointers[k] + strlen("/HostConfig/"));
			continue;
		}
		check_lines(i, list, id, &outside);
		if (id && outside == 0) /* keep-id maps it to the user who runs the engine */
			hard_report_fail(i->v.r, HARD_USER, list, NULL,
					 "an id that lands on a host id of its own",
					 "%s %" PRIu64 ", which is mapped nowhere, or to id 0",
					 k ? "gid" : "uid", id);
		if (id && outside == 0)
			hard_report_fail(i->v.r, HARD_ROOTLESS, list, NULL,
					 "the user mapped to a host id of its own",
					 "no such mapping");
	}
}

static void check_userns(struct hard_inspector *i)
{
	const struct aqe_json *mode =
		hard_inspect_need(i, HARD_ROOTLESS, "/HostConfig/UsernsMode", "a user namespace");
	const bool mapped = hard_inspect_get(i, "/HostConfig/IDMappings") != NULL;

	if (!mode)
		return;
	if (mode->len && !(i->podman && aqe_str_eq(aqe_json_str(mode), "private")))
		hard_report_fail(i->v.r, HARD_ROOTLESS, mode, NULL,
				 i->podman ? "\"private\", or a rootless engine"
					   : "the engine's own user namespace",
				 "%s", hard_verify_quote(&i->v, aqe_json_str(mode)));
	else if (mode->len || mapped)
		check_mappings(i, mode);
	else if (!i->ctx.info_rootless)
		hard_report_fail(i->v.r, HARD_ROOTLESS, mode, NULL,
				 "a rootless engine (--engine-info), or a user namespace with "
				 "mappings",
				 "no user namespace, and nothing says the engine is rootless");
}

void hard_inspect_isolation(struct hard_inspector *i)
{
	check_modes(i);
	check_network(i);
	check_userns(i);
}
