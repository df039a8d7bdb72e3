/* SPDX-License-Identifier: MIT */
#include "netpolicy/entry.h"

#include <string.h>

#include "netpolicy/idna.h"
#include "netpolicy/suffix.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ASCII_MAX 512 /* room for more than any host, so that its parser says what is wrong */
#define SHOWN_MAX 80  /* bytes of an entry in a message */

/* An entry on its way: what is left of its text, and what was found. */
struct entry {
	const char *p;
	size_t n;
	bool wildcard;
	uint16_t port;
	struct netpol_host host;
};

static void trim(struct entry *in)
{
	while (in->n && strchr(" \t\r\n", in->p[0]) && in->p[0]) {
		in->p++;
		in->n--;
	}
	while (in->n && strchr(" \t\r\n", in->p[in->n - 1]) && in->p[in->n - 1])
		in->n--;
}

static bool has(const struct entry *in, char c)
{
	return memchr(in->p, c, in->n) != NULL;
}

/* Things people write that are no hosts; said in their own words. */
static const char *not_a_host(const struct entry *in)
{
	const char *slash = memchr(in->p, '/', in->n);
	struct netpol_addr a;

	if (!in->n)
		return "empty";
	if (in->n > NETPOL_RULE_TEXT_MAX)
		return "over 512 bytes";
	if (slash && netpol_addr_parse(in->p, (size_t)(slash - in->p), &a))
		return "a network is no entry; private ones go into 'allowCidr'";
	if (slash)
		return "a URL or a path; wanted only the host";
	if (has(in, '@'))
		return "user information before the host; wanted only the host";
	if (in->n == 1 && in->p[0] == '*')
		return "would allow everything; list the hosts";
	if (in->p[0] == '.')
		return "begins with a dot, whose meaning differs between programs; write '*.HOST'";
	if (netpol_addr_parse(in->p, in->n, &a) && a.v6)
		return "an IPv6 address needs brackets";
	return NULL;
}

static const char *take_wildcard(struct entry *in)
{
	if (in->n >= 2 && in->p[0] == '*' && in->p[1] == '.') {
		in->wildcard = true;
		in->p += 2;
		in->n -= 2;
	}
	return has(in, '*') ? "'*' can only be '*.' in front" : NULL;
}

static const char *take_port(struct entry *in)
{
	const char *port = NULL;
	size_t port_n = 0;

	netpol_authority_split(in->p, in->n, &in->n, &port, &port_n);
	if (port && !netpol_port_parse(port, port_n, &in->port))
		return "port is not 1 to 65535";
	return NULL;
}

/* U-labels become A-labels; everything else passes to the parser of hosts as it is. No allocation:
 * a text that was cut would be another host. */
static const char *to_ascii(const struct entry *in, char ret[ASCII_MAX], size_t *ret_n)
{
	size_t at = 0, used = 0;

	while (at < in->n) {
		const char *dot = memchr(in->p + at, '.', in->n - at);
		const size_t len = dot ? (size_t)(dot - in->p) - at : in->n - at;
		char label[NETPOL_IDNA_MAX + 1] = "";
		const char *why = NULL;

		if (len && !netpol_idna_label(in->p + at, len, label, &why))
			return why;
		if (used + strlen(label) + 2 > ASCII_MAX)
			return "over 253 bytes";
		for (const char *c = label; *c; c++)
			ret[used++] = *c;
		if (dot)
			ret[used++] = '.';
		at += len + (dot ? 1 : 0);
	}
	*ret_n = used;
	return NULL;
}

static const char *take_host(struct entry *in)
{
	char text[ASCII_MAX];
	const char *why = NULL;
	size_t n = 0;

	if (!in->n)
		return "no host";
	if (in->p[0] == '[') {
		(void)netpol_host_parse(in->p, in->n, &in->host, &why);
		return why;
	}
	why = to_ascii(in, text, &n);
	if (!why)
		(void)netpol_host_parse(text, n, &in->host, &why);
	return why;
}

static const char *check_wildcard(const struct entry *in)
{
	if (!in->wildcard)
		return NULL;
	if (in->host.kind == NETPOL_HOST_LITERAL)
		return "a wildcard over an address";
	if (strcmp(in->host.text, "localhost") == 0)
		return NULL; /* the container's own, never proxied */
	if (netpol_suffix_is_public(in->host.text))
		return "a wildcard over a public suffix, below which anybody can have a name";
	return NULL;
}

static const char *read_entry(struct entry *in)
{
	const char *why;

	trim(in);
	why = not_a_host(in);
	if (!why)
		why = take_wildcard(in);
	if (!why)
		why = take_port(in);
	if (!why)
		why = take_host(in);
	return why ? why : check_wildcard(in);
}

static const char *warning_of(struct aqe_arena *a, const struct entry *in)
{
	static const char *const metadata[] = { "metadata", "metadata.google.internal",
						"metadata.goog", "instance-data", NULL };
	const char *shared = in->wildcard ? netpol_suffix_shared(in->host.text)
					  : netpol_suffix_shared_host(in->host.text);

	if (netpol_host_is_local(&in->host))
		return "means the container itself: reached directly, never proxied";
	if (aqe_str_in(in->host.text, metadata))
		return "a cloud's metadata service: its address is denied whatever is listed";
	if (!shared)
		return NULL;
	return aqe_arena_fmt(a, "shared: anybody can have a place %s %s",
			     in->wildcard ? "below" : "on", shared);
}

static int fault(const char *entry, size_t n, const char *why, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf raw = AQE_BUF_INIT(SHOWN_MAX);
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)8 * SHOWN_MAX);

	(void)aqe_buf_add(&raw, entry, n < SHOWN_MAX ? n : SHOWN_MAX);
	aqe_buf_quote(&shown, aqe_buf_str(&raw), SHOWN_MAX);
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "entry '%s': %s", aqe_buf_str(&shown), why);
}

int netpol_entry_parse(struct aqe_arena *a, const char *entry, size_t n, struct netpol_rule **ret,
		       struct aqe_err *e)
{
	struct entry in = { .p = entry, .n = n };
	const char *why = read_entry(&in);
	const char *star = in.wildcard ? "*." : "";
	struct netpol_rule *rule;

	if (why)
		return fault(entry, n, why, e);
	rule = aqe_arena_alloc(a, sizeof(*rule));
	if (!rule)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an entry");
	rule->wildcard = in.wildcard;
	rule->port = in.port;
	rule->base = aqe_arena_ndup(a, in.host.text, in.host.len);
	rule->text = in.port ? aqe_arena_fmt(a, "%s%s:%u", star, in.host.text, in.port)
			     : aqe_arena_fmt(a, "%s%s", star, in.host.text);
	rule->warning = warning_of(a, &in);
	if (!rule->base || !rule->text)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an entry");
	*ret = rule;
	return AQE_OK;
}
