/* SPDX-License-Identifier: MIT */
#include "hardening/verify_in.h"

#include <inttypes.h>
#include <stddef.h>

#include "shim/core/text.h"

#define IDS_END (1ULL << 32) /* ids are 32-bit; the last one, -1, is invalid */
#define NO_ID   UINT64_MAX

/* uid or gid side: the same rules, another member. */
struct side {
	const char *map_pointer; /* "/linux/uidMappings" */
	const char *id_pointer;  /* "/process/user/uid" */
	const char *word;        /* "uid" */
};
static const struct side sides[] = {
	{ "/linux/uidMappings", "/process/user/uid", "uid" },
	{ "/linux/gidMappings", "/process/user/gid", "gid" },
};

static const struct hard_idmap *host_map(const struct hard_host *host, const struct side *side,
					 size_t *ret_n)
{
	const bool uid = side == &sides[0];

	*ret_n = uid ? host->n_uid : host->n_gid;
	return uid ? host->uid_map : host->gid_map;
}

/* Where `id` lands through `map`, or NO_ID. */
static uint64_t map_id(const struct hard_idmap *map, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (id >= map[i].inside && id - map[i].inside < map[i].size)
			return map[i].outside + (id - map[i].inside);
	return NO_ID;
}

/* True when all of [first, first + size) is inside `map` without a hole. */
static bool map_covers(const struct hard_idmap *map, size_t n, uint64_t first, uint64_t size)
{
	const uint64_t end = first + size;

	/* each round moves past one line of the map, so n rounds are enough */
	for (size_t round = 0; round <= n && first < end; round++) {
		size_t i = 0;

		while (i < n && !(first >= map[i].inside && first - map[i].inside < map[i].size))
			i++;
		if (i == n)
			return false;
		first = map[i].inside + map[i].size;
	}
	return first >= end;
}

static bool ranges_meet(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* One line of uidMappings or gidMappings. False after reporting. */
static bool read_line(struct hard_verifier *v, const struct aqe_json *line, struct hard_idmap *ret)
{
	static const struct {
		const char *name;
		size_t offset;
	} members[] = {
		{ "containerID", offsetof(struct hard_idmap, inside) },
		{ "hostID", offsetof(struct hard_idmap, outside) },
		{ "size", offsetof(struct hard_idmap, size) },
	};

	for (size_t i = 0; i < AQE_COUNT(members); i++) {
		const struct aqe_json *m =
			hard_verify_member(v, HARD_ROOTLESS, line, members[i].name, "a number");
		uint64_t *const value = (uint64_t *)(void *)((char *)ret + members[i].offset);

		if (!m)
			return false;
		if (!aqe_json_to_u64(m, UINT32_MAX, value)) {
			hard_report_fail(v->r, HARD_ROOTLESS, m, NULL, "a 32-bit number", "%s",
					 m->text);
			return false;
		}
	}
	if (ret->size == 0 || ret->inside + ret->size > IDS_END - 1 ||
	    ret->outside + ret->size > IDS_END - 1) {
		hard_report_fail(v->r, HARD_ROOTLESS, line, NULL,
				 "a range of at least one id that ends below 4294967295",
				 "%" PRIu64 " ids from %" PRIu64, ret->size, ret->outside);
		return false;
	}
	return true;
}

/* Whether a line reaches host ids that are not the container's to have (R15). */
static void check_line_target(struct hard_verifier *v, const struct side *side,
			      const struct aqe_json *line, const struct hard_idmap *m)
{
	const struct hard_host *host = v->ctx->host;

	if (host && host->in_userns) {
		size_t n;
		const struct hard_idmap *ours = host_map(host, side, &n);

		if (!map_covers(ours, n, m->outside, m->size))
			hard_report_fail(v->r, HARD_ROOTLESS, line, NULL,
					 "ids of the engine's own user namespace",
					 "%" PRIu64 " ids from %" PRIu64, m->size, m->outside);
		return;
	}
	if (v->ctx->info_rootless && !host)
		return; /* hostID counts in the engine's namespace, which nobody told us */
	if (m->outside < HARD_HOST_ID_MIN)
		hard_report_fail(v->r, HARD_ROOTLESS, line, NULL, "host ids from 65536 up",
				 "%" PRIu64 " ids from host id %" PRIu64, m->size, m->outside);
}

/* Reads and judges one side's mappings into `map`; the number of good lines. */
static size_t read_map(struct hard_verifier *v, const struct side *side,
		       struct hard_idmap map[HARD_IDMAP_MAX])
{
	const struct aqe_json *list = hard_verify_need(v, HARD_ROOTLESS, side->map_pointer,
						       "mappings of the user namespace");
	size_t n = 0;

	if (list && list->len == 0) {
		hard_report_fail(v->r, HARD_ROOTLESS, list, NULL, "at least one mapping", "none");
		hard_report_fail(v->r, HARD_MISSING_FIELD, list, NULL, "at least one mapping",
				 "none");
	}
	if (list && list->len > HARD_IDMAP_MAX) {
		hard_report_fail(v->r, HARD_ROOTLESS, list, NULL,
				 "at most 340 mappings, the "
				 "kernel's limit",
				 "%zu", list->len);
		return 0;
	}
	for (const struct aqe_json *line = list ? list->first : NULL; line; line = line->next) {
		struct hard_idmap *m = &map[n];

		if (!read_line(v, line, m))
			continue;
		check_line_target(v, side, line, m);
		for (size_t i = 0; i < n; i++)
			if (ranges_meet(map[i].inside, map[i].size, m->inside, m->size) ||
			    ranges_meet(map[i].outside, map[i].size, m->outside, m->size))
				hard_report_fail(v->r, HARD_ROOTLESS, line, NULL,
						 "ranges that do not overlap",
						 "an overlap with an earlier one");
		n++;
	}
	return n;
}

/* Where the agent's id lands on the host, composed through every known map. `map` NULL: the
 * document has no user namespace of its own. */
static void check_target(struct hard_verifier *v, const struct side *side,
			 const struct hard_idmap *map, size_t n)
{
	const struct aqe_json *id = aqe_json_at(v->spec, side->id_pointer);
	const struct hard_host *host = v->ctx->host;
	uint64_t inner, outer;

	if (!id || !aqe_json_to_u64(id, UINT32_MAX, &inner))
		return; /* reported by the check of its shape */
	outer = map ? map_id(map, n, inner) : inner;
	if (outer == NO_ID) {
		hard_report_fail(v->r, HARD_USER, id, NULL, "an id that the mappings cover",
				 "%s %" PRIu64 ", which is mapped nowhere", side->word, inner);
		return;
	}
	if (outer == 0) {
		hard_report_fail(v->r, HARD_USER, id, NULL, "an id that is not host id 0",
				 "%s %" PRIu64 ", which is id 0 outside", side->word, inner);
		return;
	}
	if (!host || !host->in_userns)
		return;

	/* rootless: id 0 of the engine's namespace is the user who started it */
	size_t n_ours;
	const struct hard_idmap *ours = host_map(host, side, &n_ours);
	const uint64_t invoker = map_id(ours, n_ours, 0);
	const uint64_t target = map_id(ours, n_ours, outer);

	if (target == NO_ID || target == invoker || target < HARD_HOST_ID_MIN)
		hard_report_fail(v->r, HARD_USER, id, NULL,
				 "an id that lands in the subordinate range",
				 "%s %" PRIu64 ", which is %s", side->word, inner,
				 target == NO_ID     ? "mapped nowhere"
				 : target == invoker ? "the user who runs the engine"
						     : "an account of the host");
}

/* The user namespace entry of the document, or NULL. */
static const struct aqe_json *find_userns(const struct aqe_json *spec)
{
	const struct aqe_json *list = aqe_json_at(spec, "/linux/namespaces");

	for (const struct aqe_json *ns = list ? list->first : NULL; ns; ns = ns->next)
		if (aqe_str_eq(aqe_json_str(aqe_json_get(ns, "type")), "user"))
			return ns;
	return NULL;
}

/* No user namespace of its own: the engine's must do. */
static void check_engine_rootless(struct hard_verifier *v)
{
	const struct hard_host *host = v->ctx->host;
	const struct aqe_json *linux_ = aqe_json_get(v->spec, "linux");

	for (size_t i = 0; i < AQE_COUNT(sides); i++) {
		const struct aqe_json *list = aqe_json_at(v->spec, sides[i].map_pointer);

		if (list && list->len > 0)
			hard_report_fail(v->r, HARD_ROOTLESS, list, NULL,
					 "mappings only with a user namespace",
					 "mappings that every runtime ignores");
	}
	if (host ? host->in_userns : v->ctx->info_rootless)
		return;
	hard_report_fail(v->r, HARD_ROOTLESS, linux_ ? linux_ : v->spec,
			 linux_ ? "/namespaces" : "/linux/namespaces",
			 "a rootless engine, or a user namespace with mappings",
			 host ? "a rootful engine and no user namespace"
			      : "no user namespace, and nothing says the engine is rootless");
}

void hard_verify_ids(struct hard_verifier *v)
{
	const struct aqe_json *userns = find_userns(v->spec);
	const struct aqe_json *path = aqe_json_get(userns, "path");
	struct hard_idmap map[HARD_IDMAP_MAX];

	if (path)
		hard_report_fail(v->r, HARD_ROOTLESS, path, NULL, "a new user namespace",
				 "an existing one");
	if (!userns)
		check_engine_rootless(v);
	for (size_t i = 0; i < AQE_COUNT(sides); i++) {
		const size_t n = userns ? read_map(v, &sides[i], map) : 0;

		check_target(v, &sides[i], userns ? map : NULL, n);
	}
}
