/* SPDX-License-Identifier: MIT */
#include "hardening/effect_parse.h"

#include <string.h>

#include "shim/core/text.h"

/* A piece of a text that is not NUL-terminated. */
struct span {
	const char *p, *end;
};

/* Cuts the next line (without its newline) off `rest`; false at the end. */
static bool next_line(struct span *rest, struct span *line)
{
	const char *nl;

	if (rest->p == rest->end)
		return false;
	nl = memchr(rest->p, '\n', (size_t)(rest->end - rest->p));
	line->p = rest->p;
	line->end = nl ? nl : rest->end;
	rest->p = nl ? nl + 1 : rest->end;
	return true;
}

#define TOKEN_MAX 64

/* Copies the next word (blanks and tabs separate) to `tok`; false when there is none or it is too
 * long for anything we know. */
static bool next_word(struct span *s, char tok[TOKEN_MAX])
{
	size_t n = 0;

	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
	while (s->p < s->end && *s->p != ' ' && *s->p != '\t') {
		if (n == TOKEN_MAX - 1)
			return false;
		tok[n++] = *s->p++;
	}
	tok[n] = '\0';
	return n > 0;
}

static bool at_end(struct span *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
	return s->p == s->end;
}

/* Octal and hexadecimal as the kernel prints them: leading zeros, lower case. */
static bool parse_digits(const char *s, unsigned base, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t v = 0;
	size_t n = 0;

	for (; s[n]; n++) {
		const char *d = memchr(digits, s[n], base);

		if (!d || n == 16)
			return false;
		v = v * base + (uint64_t)(d - digits);
	}
	if (n == 0)
		return false;
	*ret = v;
	return true;
}

/* ---- /proc/PID/status ---- */

enum status_kind {
	STATUS_LETTER,
	STATUS_HEX,
	STATUS_OCTAL,
	STATUS_DECIMAL,
	STATUS_FOUR, /* four ids */
	STATUS_GROUPS,
	STATUS_NSPID,
};

struct status_row {
	const char *label;
	size_t offset;
	enum status_kind kind;
	bool required;
};

const char *const HARD_FX_CAP_LABEL[HARD_FX_CAP_SETS] = {
	[HARD_FX_CAP_INHERITABLE] = "CapInh", [HARD_FX_CAP_PERMITTED] = "CapPrm",
	[HARD_FX_CAP_EFFECTIVE] = "CapEff",   [HARD_FX_CAP_BOUNDING] = "CapBnd",
	[HARD_FX_CAP_AMBIENT] = "CapAmb",
};

#define AT(member)  offsetof(struct hard_fx_status, member)
#define CAP(set)    (AT(caps) + (size_t)(set) * sizeof(uint64_t))
#define STATUS_ROWS 14

static const struct status_row STATUS_TABLE[STATUS_ROWS] = {
	{ "State", AT(state), STATUS_LETTER, true },
	{ "Uid", AT(uid), STATUS_FOUR, true },
	{ "Gid", AT(gid), STATUS_FOUR, true },
	{ "Groups", AT(groups), STATUS_GROUPS, true },
	{ "Umask", AT(umask), STATUS_OCTAL, false },
	{ "NSpid", AT(nspid_last), STATUS_NSPID, true },
	{ "CapInh", CAP(HARD_FX_CAP_INHERITABLE), STATUS_HEX, true },
	{ "CapPrm", CAP(HARD_FX_CAP_PERMITTED), STATUS_HEX, true },
	{ "CapEff", CAP(HARD_FX_CAP_EFFECTIVE), STATUS_HEX, true },
	{ "CapBnd", CAP(HARD_FX_CAP_BOUNDING), STATUS_HEX, true },
	{ "CapAmb", CAP(HARD_FX_CAP_AMBIENT), STATUS_HEX, true },
	{ "NoNewPrivs", AT(no_new_privs), STATUS_DECIMAL, true },
	{ "Seccomp", AT(seccomp), STATUS_DECIMAL, true },
	{ "Seccomp_filters", AT(seccomp_filters), STATUS_DECIMAL, false },
};

/* The row of the line's label, and the line moved behind the colon; NULL for lines of no interest.
 */
static const struct status_row *status_row_of(struct span *line, size_t *ret_idx)
{
	const char *colon = memchr(line->p, ':', (size_t)(line->end - line->p));
	size_t n, i;

	if (!colon)
		return NULL;
	n = (size_t)(colon - line->p);
	for (i = 0; i < STATUS_ROWS; i++) {
		const char *label = STATUS_TABLE[i].label;

		if (strlen(label) == n && memcmp(label, line->p, n) == 0) {
			line->p = colon + 1;
			*ret_idx = i;
			return &STATUS_TABLE[i];
		}
	}
	return NULL;
}

/* Reads up to `max` decimal numbers, which must be all there is on the line. */
static bool read_numbers(struct span *line, uint64_t *ret, size_t max, size_t *ret_n)
{
	char tok[TOKEN_MAX];
	size_t n = 0;

	while (!at_end(line)) {
		if (n == max || !next_word(line, tok) || !aqe_parse_u64(tok, UINT32_MAX, &ret[n]))
			return false;
		n++;
	}
	*ret_n = n;
	return true;
}

static bool read_one(struct span *line, enum status_kind kind, void *at)
{
	char tok[TOKEN_MAX];

	if (!next_word(line, tok))
		return false;
	if (kind == STATUS_LETTER) { /* "S (sleeping)" */
		memcpy(at, tok, 1);
		return tok[1] == '\0';
	}
	if (!at_end(line))
		return false;
	if (kind == STATUS_DECIMAL)
		return aqe_parse_u64(tok, UINT32_MAX, at);
	return parse_digits(tok, kind == STATUS_HEX ? 16 : 8, at);
}

#define NSPID_MAX 33 /* the kernel nests at most 32 pid namespaces below the first */

static bool status_value(struct span *line, const struct status_row *row, struct hard_fx_status *st)
{
	void *at = (char *)st + row->offset;
	uint64_t pids[NSPID_MAX];
	size_t n = 0;

	switch (row->kind) {
	case STATUS_LETTER:
	case STATUS_HEX:
	case STATUS_OCTAL:
	case STATUS_DECIMAL:
		return read_one(line, row->kind, at);
	case STATUS_FOUR:
		return read_numbers(line, at, 4, &n) && n == 4;
	case STATUS_GROUPS:
		return read_numbers(line, at, HARD_FX_GROUPS_MAX, &st->n_groups);
	case STATUS_NSPID:
		if (!read_numbers(line, pids, NSPID_MAX, &n) || n == 0)
			return false;
		st->n_nspid = n;
		st->nspid_last = pids[n - 1];
		return true;
	}
	return false;
}

int hard_fx_status_parse(const char *text, struct hard_fx_status *ret, struct aqe_err *e)
{
	struct span rest = { text, text + strlen(text) }, line;
	struct hard_fx_status st = { 0 };
	bool seen[STATUS_ROWS] = { false };
	size_t i = 0;

	while (next_line(&rest, &line)) {
		const struct status_row *row = status_row_of(&line, &i);

		if (!row)
			continue;
		if (seen[i] || !status_value(&line, row, &st))
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "process status: line '%s'",
					   row->label);
		seen[i] = true;
		if (row->offset == AT(umask))
			st.has_umask = true;
		if (row->offset == AT(seccomp_filters))
			st.has_filters = true;
	}
	for (i = 0; i < STATUS_ROWS; i++)
		if (STATUS_TABLE[i].required && !seen[i])
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "process status: no line '%s'",
					   STATUS_TABLE[i].label);
	*ret = st;
	return 0;
}

/* ---- uid_map, gid_map ---- */

int hard_fx_idmap_parse(const char *text, struct hard_idmap *ret, size_t max, size_t *ret_n,
			struct aqe_err *e)
{
	struct span rest = { text, text + strlen(text) }, line;
	size_t n = 0, got;
	uint64_t v[3];

	while (next_line(&rest, &line)) {
		if (n == max)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu id ranges", max);
		if (!read_numbers(&line, v, 3, &got) || got != 3)
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "id map: line %zu", n + 1);
		ret[n++] = (struct hard_idmap){ v[0], v[1], v[2] };
	}
	*ret_n = n;
	return 0;
}

size_t hard_fx_idmap_normalise(struct hard_idmap *map, size_t n)
{
	size_t i, j, out = 0;

	/* At most 340 ranges, and sorted already in practice: insertion sort. */
	for (i = 1; i < n; i++) {
		struct hard_idmap m = map[i];

		for (j = i; j > 0 && map[j - 1].inside > m.inside; j--)
			map[j] = map[j - 1];
		map[j] = m;
	}
	for (i = 0; i < n; i++) {
		if (map[i].size == 0)
			continue;
		if (out && map[out - 1].inside + map[out - 1].size == map[i].inside &&
		    map[out - 1].outside + map[out - 1].size == map[i].outside)
			map[out - 1].size += map[i].size;
		else
			map[out++] = map[i];
	}
	return out;
}

bool hard_fx_idmap_equal(const struct hard_idmap *a, size_t n_a, const struct hard_idmap *b,
			 size_t n_b)
{
	size_t i;

	if (n_a != n_b)
		return false;
	for (i = 0; i < n_a; i++)
		if (a[i].inside != b[i].inside || a[i].outside != b[i].outside ||
		    a[i].size != b[i].size)
			return false;
	return true;
}

bool hard_fx_idmap_out(const struct hard_idmap *map, size_t n, uint64_t inside, uint64_t *ret)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (inside >= map[i].inside && inside - map[i].inside < map[i].size) {
			*ret = map[i].outside + (inside - map[i].inside);
			return true;
		}
	}
	return false;
}

/* ---- net ---- */

int hard_fx_netdev_parse(const char *text, char (*ret)[HARD_FX_NAME_MAX], size_t max, size_t *ret_n,
			 struct aqe_err *e)
{
	struct span rest = { text, text + strlen(text) }, line;
	size_t n = 0, row = 0, len;

	while (next_line(&rest, &line)) {
		const char *colon = memchr(line.p, ':', (size_t)(line.end - line.p));

		if (row++ < 2) /* two lines of headings */
			continue;
		while (line.p < line.end && *line.p == ' ')
			line.p++;
		/* Names have neither ':' nor white space (dev_valid_name() in the kernel). */
		len = colon && colon > line.p ? (size_t)(colon - line.p) : 0;
		if (len == 0 || len >= HARD_FX_NAME_MAX)
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "net/dev: line %zu", row);
		if (n == max)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu interfaces", max);
		memcpy(ret[n], line.p, len);
		ret[n++][len] = '\0';
	}
	if (row < 2)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "net/dev: no headings");
	*ret_n = n;
	return 0;
}

#define ROUTE6_FIELDS 10

/* The interface of one route: the first word of an IPv4 line, the tenth of an IPv6 one. */
static bool route_device(struct span line, bool v6, char tok[TOKEN_MAX])
{
	size_t i, field = v6 ? ROUTE6_FIELDS : 1;

	for (i = 0; i < field; i++)
		if (!next_word(&line, tok))
			return false;
	return strlen(tok) < HARD_FX_NAME_MAX;
}

int hard_fx_route_first(const char *text, bool v6, char ret[HARD_FX_NAME_MAX], struct aqe_err *e)
{
	struct span rest = { text, text + strlen(text) }, line;
	char tok[TOKEN_MAX];
	size_t row = 0;

	while (next_line(&rest, &line)) {
		row++;
		if (at_end(&line) || (!v6 && row == 1)) /* net/route has a heading */
			continue;
		if (!route_device(line, v6, tok))
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "routes: line %zu", row);
		if (!aqe_str_eq(tok, "lo")) {
			memcpy(ret, tok, strlen(tok) + 1);
			return 1;
		}
	}
	return 0;
}

bool hard_fx_netdev_fallback(const char *name)
{
	static const char *const names[] = { "tunl0",    "gre0", "gretap0", "erspan0", "ip_vti0",
					     "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0", NULL };

	return aqe_str_in(name, names);
}

/* ---- cgroup files, swaps ---- */

int hard_fx_limit_parse(const char *text, uint64_t *ret, struct aqe_err *e)
{
	struct span s = { text, text + strcspn(text, "\n") };
	char tok[TOKEN_MAX];

	if (!next_word(&s, tok) || !at_end(&s))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not one value");
	if (aqe_str_eq(tok, "max") || aqe_str_eq(tok, "-1")) { /* v2 and pids; v1 cpu quota */
		*ret = HARD_FX_UNLIMITED;
		return 0;
	}
	if (!aqe_parse_u64(tok, INT64_MAX, ret))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not a number");
	return 0;
}

int hard_fx_cpumax_parse(const char *text, uint64_t *ret_quota, uint64_t *ret_period,
			 struct aqe_err *e)
{
	struct span s = { text, text + strcspn(text, "\n") };
	char quota[TOKEN_MAX], period[TOKEN_MAX];
	uint64_t q = HARD_FX_UNLIMITED, p;

	if (!next_word(&s, quota) || !next_word(&s, period) || !at_end(&s) ||
	    (!aqe_str_eq(quota, "max") && !aqe_parse_u64(quota, INT64_MAX, &q)) ||
	    !aqe_parse_u64(period, INT64_MAX, &p) || p == 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not 'QUOTA PERIOD'");
	*ret_quota = q;
	*ret_period = p;
	return 0;
}

/* What crun 1.8.1 and runc 1.1.5 admit to every container. 10:200 is tun: runc admits it, but there
 * is no node, no capability to make one, and an interface needs CAP_NET_ADMIN. */
static bool device_is_usual(const char *numbers)
{
	static const char *const usual[] = { "1:3", "1:5", "1:7",    "1:8",   "1:9", "5:0",
					     "5:1", "5:2", "10:200", "136:*", NULL };

	return aqe_str_in(numbers, usual);
}

int hard_fx_devices_wide(const char *text, char ret[HARD_FX_DEVLINE_MAX], struct aqe_err *e)
{
	struct span rest = { text, text + strlen(text) }, line;
	char type[TOKEN_MAX], numbers[TOKEN_MAX], access[TOKEN_MAX];

	while (next_line(&rest, &line)) {
		struct span s = line;
		size_t n = (size_t)(line.end - line.p);

		if (!next_word(&s, type) || !next_word(&s, numbers) || !next_word(&s, access) ||
		    !at_end(&s) || n >= HARD_FX_DEVLINE_MAX)
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "devices.list");
		if (type[0] != 'a' && !strpbrk(access, "rw"))
			continue; /* "c *:* m": making nodes only, which needs a capability */
		if (type[0] == 'c' && device_is_usual(numbers))
			continue;
		memcpy(ret, line.p, n);
		ret[n] = '\0';
		return 1;
	}
	return 0;
}

bool hard_fx_swaps_none(const char *text)
{
	const char *nl = strchr(text, '\n');

	return nl && nl[1] == '\0';
}
