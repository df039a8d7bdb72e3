/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define ENTRY_MAX ((size_t)1 << 20) /* far above a row with every text at its maximum */
#define NAME_MAX_ 64                /* of a field, the journal's own limit */

/* ---- the entry ---- */

/* syslog's levels */
static const char *const PRIORITIES[AUDIT_ACTION_COUNT] = {
	[AUDIT_ACTION_ANY] = "6",   [AUDIT_ALLOWED] = "6", [AUDIT_BLOCKED] = "4",
	[AUDIT_RATE_LIMITED] = "5", [AUDIT_REFUSED] = "4", [AUDIT_CHANGED] = "5",
};
#define PRIORITY_GAP "3"

/* "NAME=value\n"; a value with a newline as NAME, newline, its length in 8 bytes (little endian),
 * the bytes, newline. */
static void put(struct aqe_buf *b, const char *name, const char *value)
{
	uint64_t n = strlen(value);

	(void)aqe_buf_puts(b, name);
	if (!strchr(value, '\n')) {
		(void)aqe_buf_putc(b, '=');
	} else {
		(void)aqe_buf_putc(b, '\n');
		for (int i = 0; i < 8; i++)
			(void)aqe_buf_putc(b, (char)(unsigned char)(n >> (8 * i)));
	}
	(void)aqe_buf_add(b, value, n);
	(void)aqe_buf_putc(b, '\n');
}

static void put_message(struct aqe_buf *b, const struct audit_row *r)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(2 * (size_t)AUDIT_REASON_MAX);

	(void)aqe_buf_addf(&text, "%s %s", audit_kind_name(r->kind), audit_action_name(r->action));
	if (r->agent_type)
		(void)aqe_buf_addf(&text, " %s", r->agent_type);
	if (r->domain)
		(void)aqe_buf_addf(&text, " %s", r->domain);
	if (r->domain && r->port != AUDIT_NONE)
		(void)aqe_buf_addf(&text, ":%" PRId64, r->port);
	if (!r->domain && r->container)
		(void)aqe_buf_addf(&text, " %s", r->container);
	if (r->rule || r->reason)
		(void)aqe_buf_puts(&text, ":");
	if (r->rule)
		(void)aqe_buf_addf(&text, " %s", r->rule);
	if (r->reason)
		(void)aqe_buf_addf(&text, " %s", r->reason);
	put(b, "MESSAGE", aqe_buf_str(&text));
}

static void put_field(struct aqe_buf *b, const struct audit_row *r, const struct audit_field *f)
{
	char name[NAME_MAX_] = "AQE_", number[32];
	const size_t start = strlen(name);
	const char *text = number;

	for (size_t i = 0; f->name[i] && start + i + 1 < sizeof(name); i++) {
		const char c = f->name[i];

		name[start + i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
	}
	switch (f->type) {
	case AUDIT_FIELD_TEXT:
	case AUDIT_FIELD_JSON:
		text = audit_field_text(r, f);
		break;
	case AUDIT_FIELD_KIND:
		text = audit_kind_name(r->kind);
		break;
	case AUDIT_FIELD_ACTION:
		text = audit_action_name(r->action);
		break;
	case AUDIT_FIELD_TIME:
	case AUDIT_FIELD_NUMBER:
		if (audit_field_int(r, f) == AUDIT_NONE)
			return;
		(void)snprintf(number, sizeof(number), "%" PRId64, audit_field_int(r, f));
		break;
	}
	if (text)
		put(b, name, text);
}

void shim_journal_emit(const struct audit_row *r, struct aqe_buf *b)
{
	static const char HEX[] = "0123456789abcdef";
	const bool gap = r->kind == AUDIT_SYSTEM && aqe_str_eq(r->reason, AUDIT_REASON_GAP);

	put_message(b, r);
	put(b, "PRIORITY",
	    gap ? PRIORITY_GAP
		: PRIORITIES[r->action < AUDIT_ACTION_COUNT ? r->action : AUDIT_ACTION_ANY]);
	put(b, "SYSLOG_IDENTIFIER", "aqe-audit");
	put(b, "MESSAGE_ID", SHIM_JOURNAL_MESSAGE_ID);
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		if (r->seq > 0 || !aqe_str_eq(AUDIT_FIELDS[i].name, "seq"))
			put_field(b, r, &AUDIT_FIELDS[i]);
	}
	if (r->seq <= 0)
		return;
	(void)aqe_buf_puts(b, "AQE_HASH=");
	for (size_t i = 0; i < sizeof(r->hash); i++) {
		(void)aqe_buf_putc(b, HEX[r->hash[i] >> 4]);
		(void)aqe_buf_putc(b, HEX[r->hash[i] & 15]);
	}
	(void)aqe_buf_putc(b, '\n');
}

/* ---- sending ---- */

static bool send_bytes(int sock, const struct aqe_buf *b)
{
	return send(sock, b->p, b->len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* The journal takes a descriptor only when nobody can change the file any more. */
static bool send_file(int sock, const struct aqe_buf *b)
{
	AQE_AUTO_FD int fd = memfd_create("aqe-audit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = "" };
	struct msghdr m = { .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	struct aqe_err ignored = AQE_ERR_INIT;

	if (fd < 0 || !c || aqe_fs_write_all(fd, b->p, b->len, &ignored) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return false;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool shim_journal_send(const char *path, const struct audit_row *rows, size_t n)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(ENTRY_MAX);
	AQE_AUTO_FD int sock = -1;
	const size_t len = strlen(path);

	if (len >= sizeof(to.sun_path))
		return false;
	memcpy(to.sun_path, path, len);
	if (access(path, W_OK) != 0)
		return false; /* no journal here: nothing to be made for it */
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0 || connect(sock, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (rows[i].time_ns == 0)
			continue; /* was left out of the log */
		aqe_buf_clear(&b);
		shim_journal_emit(&rows[i], &b);
		if (aqe_buf_ok(&b, NULL))
			return false;
		if (!send_bytes(sock, &b) &&
		    ((errno != EMSGSIZE && errno != ENOBUFS) || !send_file(sock, &b)))
			return false;
	}
	return true;
}

void shim_journal_rows(const struct audit_row *rows, size_t n)
{
	(void)shim_journal_send(SHIM_JOURNAL_SOCKET, rows, n); /* the log itself has them */
}

void shim_journal_row(const struct audit_row *r)
{
	shim_journal_rows(r, 1);
}
