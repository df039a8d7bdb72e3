/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/record.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "shim/core/buf.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

/* The texts of a record, for checking and writing. */
static const struct {
	const char *name;
	size_t offset, size;
} TEXTS[] = {
#define TEXT(member)                                                   \
	{                                                              \
#member, offsetof(struct netpol_record, member),       \
			sizeof(((struct netpol_record *)NULL)->member) \
	}
	TEXT(listener), TEXT(method),  TEXT(reason), TEXT(host), TEXT(raw_host), TEXT(rule),
	TEXT(address),  TEXT(dropped), TEXT(sni),    TEXT(alpn), TEXT(path),     TEXT(policy),
#undef TEXT
};

const char *netpol_flag_name(unsigned i)
{
	static const char *const names[NETPOL_FLAG_COUNT] = { "would_deny", "host_mismatch",
							      "ech",        "sni_audit",
							      "websocket",  "local_limit" };

	return i < NETPOL_FLAG_COUNT ? names[i] : "?";
}

void netpol_record_init(struct netpol_record *r)
{
	memset(r, 0, sizeof(*r));
	r->duration_us = r->dns_us = r->connect_us = -1;
}

static bool text_ok(const char *p, size_t size)
{
	const char *end = memchr(p, '\0', size);

	for (; end && p < end; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			return false;
	}
	return end != NULL;
}

bool netpol_record_ok(const struct netpol_record *r)
{
	for (size_t i = 0; i < AQE_COUNT(TEXTS); i++) {
		if (!text_ok((const char *)r + TEXTS[i].offset, TEXTS[i].size))
			return false;
	}
	return r->phase < NETPOL_PHASE_COUNT && r->action < NETPOL_ACTION_COUNT &&
	       r->flags < 1U << NETPOL_FLAG_COUNT && r->status < 600 && r->up <= INT64_MAX &&
	       r->down <= INT64_MAX && r->duration_us >= -1 && r->dns_us >= -1 &&
	       r->connect_us >= -1 && r->at_ns >= 0;
}

/* The numbers as they are in memory, then the texts with their ends, in the table's order. */
#define NUMBERS offsetof(struct netpol_record, listener)

size_t netpol_record_pack(const struct netpol_record *r, char *out, size_t room)
{
	size_t at = NUMBERS;

	if (room < NUMBERS)
		return 0;
	memcpy(out, r, NUMBERS);
	for (size_t i = 0; i < AQE_COUNT(TEXTS); i++) {
		const char *text = (const char *)r + TEXTS[i].offset;
		size_t n = strnlen(text, TEXTS[i].size - 1);

		if (room - at < n + 1)
			return 0;
		memcpy(out + at, text, n);
		out[at + n] = '\0';
		at += n + 1;
	}
	return at;
}

size_t netpol_record_unpack(const char *p, size_t n, struct netpol_record *ret)
{
	size_t at = NUMBERS;

	if (n < NUMBERS)
		return 0;
	memcpy(ret, p, NUMBERS);
	for (size_t i = 0; i < AQE_COUNT(TEXTS); i++) {
		size_t most = n - at < TEXTS[i].size ? n - at : TEXTS[i].size;
		const char *end = most > 0 ? memchr(p + at, '\0', most) : NULL;
		size_t len = end ? (size_t)(end - (p + at)) + 1 : 0;

		if (!end)
			return 0;
		memcpy((char *)ret + TEXTS[i].offset, p + at, len);
		at += len;
	}
	return at;
}

void netpol_record_text(char *ret, size_t size, const char *p, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		bool plain = c >= 0x20 && c < 0x7f;
		size_t need = !plain ? 4 : c == '\\' ? 2 : 1;

		if (at + need >= size)
			break;
		if (!plain) {
			ret[at++] = '\\';
			ret[at++] = 'x';
			ret[at++] = hex[c >> 4];
			ret[at++] = hex[c & 15];
			continue;
		}
		if (c == '\\')
			ret[at++] = '\\';
		ret[at++] = (char)c;
	}
	ret[at] = '\0';
}

/* ---- one JSON object a line ---- */

static void put_number(struct aqe_buf *b, const char *name, int64_t v, bool there)
{
	if (there)
		(void)aqe_buf_addf(b, ",\"%s\":%" PRId64, name, v);
}

static void put_flags(struct aqe_buf *b, unsigned flags)
{
	const char *sep = "";

	if (!flags)
		return;
	(void)aqe_buf_puts(b, ",\"flags\":[");
	for (unsigned i = 0; i < NETPOL_FLAG_COUNT; i++) {
		if (!(flags & 1U << i))
			continue;
		(void)aqe_buf_addf(b, "%s\"%s\"", sep, netpol_flag_name(i));
		sep = ",";
	}
	(void)aqe_buf_putc(b, ']');
}

static void put_line(struct aqe_buf *b, const struct netpol_record *r)
{
	static const char *const phase[] = { "decision", "close", "repeated", "event" };
	static const char *const action[] = { "allowed", "blocked", "rate_limited" };
	bool closed = r->phase == NETPOL_PHASE_CLOSE;

	(void)aqe_buf_addf(b,
			   "{\"phase\":\"%s\",\"action\":\"%s\",\"id\":%" PRIu64
			   ",\"at_ns\":%" PRId64,
			   phase[r->phase], action[r->action], r->id, r->at_ns);
	for (size_t i = 0; i < AQE_COUNT(TEXTS); i++) {
		const char *text = (const char *)r + TEXTS[i].offset;

		if (!*text)
			continue;
		(void)aqe_buf_addf(b, ",\"%s\":", TEXTS[i].name);
		aqe_json_emit_str(b, text);
	}
	put_number(b, "port", r->port, r->port > 0);
	put_number(b, "status", r->status, r->status > 0);
	put_number(b, "count", r->count, r->phase == NETPOL_PHASE_REPEATED);
	put_number(b, "up", (int64_t)r->up, closed);
	put_number(b, "down", (int64_t)r->down, closed);
	put_number(b, "duration_us", r->duration_us, r->duration_us >= 0);
	put_number(b, "dns_us", r->dns_us, r->dns_us >= 0);
	put_number(b, "connect_us", r->connect_us, r->connect_us >= 0);
	put_flags(b, r->flags);
	(void)aqe_buf_puts(b, "}\n");
}

/* The descriptor is the object: no memory of its own. */
static int lines_store(void *self, const struct netpol_record *r, size_t n, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);

	for (size_t i = 0; i < n; i++)
		put_line(&b, &r[i]);
	if (aqe_buf_ok(&b, e) < 0)
		return (int)e->code;
	return aqe_fs_write_all((int)(intptr_t)self, b.p, b.len, e);
}

static void lines_close(void *self)
{
	(void)self; /* borrowed */
}

struct netpol_audit netpol_audit_lines(int fd)
{
	static const struct netpol_audit_ops ops = { "lines", lines_store, lines_close };
	struct netpol_audit a = { &ops, (void *)(intptr_t)fd };

	return a;
}
