/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/aqe-journal-XXXXXX";
static char path[sizeof(dir) + 16];
static int sock = -1;

/* A journal of our own: a datagram socket. */
static void setup(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const struct timeval wait = { .tv_sec = 5 };

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/socket", dir);
	memcpy(a.sun_path, path, strlen(path) + 1);
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(sock, 0);
	ck_assert_int_eq(bind(sock, (const struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
}

static void teardown(void)
{
	(void)close(sock);
	(void)unlink(path);
	(void)rmdir(dir);
}

static struct audit_row request(void)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_BLOCKED);

	r.seq = 7;
	r.time_ns = INT64_C(1769904000000000005);
	r.boot_ns = 12;
	r.agent_id = "agent-1";
	r.agent_type = "coder";
	r.domain = "example.com";
	r.port = 443;
	r.reason = "domain_not_allowed";
	r.meta = "{\"a\":1}";
	memset(r.hash, 0xab, sizeof(r.hash));
	return r;
}

#define HASH_AB "abababababababababababababababababababababababababababababababab"

static size_t receive(char *into, size_t size, int *ret_fd)
{
	struct iovec part = { .iov_base = into, .iov_len = size };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	ck_assert_int_ge(n, 0);
	*ret_fd = -1;
	if (c)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return (size_t)n;
}

START_TEST(journal_send__has_every_field)
{
	static const char want[] = "MESSAGE=request blocked coder example.com:443: "
				   "domain_not_allowed\n"
				   "PRIORITY=4\n"
				   "SYSLOG_IDENTIFIER=aqe-audit\n"
				   "MESSAGE_ID=" SHIM_JOURNAL_MESSAGE_ID "\n"
				   "AQE_SEQ=7\n"
				   "AQE_TIME_NS=1769904000000000005\n"
				   "AQE_BOOT_NS=12\n"
				   "AQE_KIND=request\n"
				   "AQE_ACTION=blocked\n"
				   "AQE_AGENT_ID=agent-1\n"
				   "AQE_AGENT_TYPE=coder\n"
				   "AQE_DOMAIN=example.com\n"
				   "AQE_PORT=443\n"
				   "AQE_REASON=domain_not_allowed\n"
				   "AQE_META={\"a\":1}\n"
				   "AQE_HASH=" HASH_AB "\n";
	const struct audit_row r = request();
	char got[4096];
	size_t n;
	int fd;

	ck_assert(shim_journal_send(path, &r, 1));
	n = receive(got, sizeof(got) - 1, &fd);
	got[n] = '\0';
	ck_assert_str_eq(got, want);
	ck_assert_int_eq(fd, -1);
}
END_TEST

static const struct {
	enum audit_kind kind;
	enum audit_action action;
	const char *reason, *line;
} PRIORITIES[] = {
	{ AUDIT_REQUEST, AUDIT_ALLOWED, NULL, "PRIORITY=6\n" },
	{ AUDIT_REQUEST, AUDIT_BLOCKED, "x", "PRIORITY=4\n" },
	{ AUDIT_REQUEST, AUDIT_RATE_LIMITED, AUDIT_REASON_RATE, "PRIORITY=5\n" },
	{ AUDIT_REFUSAL, AUDIT_REFUSED, "x", "PRIORITY=4\n" },
	{ AUDIT_START, AUDIT_CHANGED, NULL, "PRIORITY=5\n" },
	{ AUDIT_SYSTEM, AUDIT_REFUSED, AUDIT_REASON_GAP, "PRIORITY=3\n" },
};

START_TEST(journal_emit__priority)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	struct audit_row r = request();

	r.kind = PRIORITIES[_i].kind;
	r.action = PRIORITIES[_i].action;
	r.reason = PRIORITIES[_i].reason;
	shim_journal_emit(&r, &b);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&b), PRIORITIES[_i].line));
}
END_TEST

/* A row that waits in the spool has no number and no hash yet; one without a time was left out of
 * the log. */
START_TEST(journal_send__rows_of_the_spool)
{
	struct audit_row rows[3] = { request(), request(), request() };
	char got[4096];
	size_t n;
	int fd;

	rows[0].seq = rows[0].time_ns = 0;
	rows[1].seq = 0;
	ck_assert(shim_journal_send(path, rows, 3));
	n = receive(got, sizeof(got) - 1, &fd);
	got[n] = '\0';
	ck_assert_ptr_nonnull(strstr(got, "AQE_TIME_NS=1769904000000000005\n"));
	ck_assert_ptr_nonnull(strstr(got, "AQE_META={\"a\":1}\n"));
	ck_assert_ptr_null(strstr(got, "AQE_SEQ"));
	ck_assert_ptr_null(strstr(got, "AQE_HASH"));
	n = receive(got, sizeof(got) - 1, &fd);
	got[n] = '\0';
	ck_assert_ptr_nonnull(strstr(got, "AQE_SEQ=7\n"));
	ck_assert_int_lt(recv(sock, got, sizeof(got), MSG_DONTWAIT), 0);
}
END_TEST

/* A value with a newline cannot forge a field: it goes with its length. */
START_TEST(journal_emit__newlines_are_counted)
{
	static const char want[] = "AQE_REASON\n\x0f\0\0\0\0\0\0\0x\nAQE_SEQ=9999\n\n";
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	struct audit_row r = request();

	r.reason = "x\nAQE_SEQ=9999\n";
	shim_journal_emit(&r, &b);
	ck_assert_ptr_nonnull(memmem(b.p, b.len, want, sizeof(want) - 1));
	ck_assert_ptr_null(memmem(b.p, b.len, "AQE_REASON=", 11));
	ck_assert_ptr_nonnull(memmem(b.p, b.len, "MESSAGE\n", 8));
}
END_TEST

/* Too large for a datagram: a sealed memory file instead. */
START_TEST(journal_send__large_rows_by_file)
{
	enum { LARGE = 400000 };
	AQE_AUTO_BUF struct aqe_buf want = AQE_BUF_INIT((size_t)1 << 20);
	AQE_AUTO_BUF struct aqe_buf got = AQE_BUF_INIT((size_t)1 << 20);
	AQE_AUTO_FREE char *meta = calloc(1, LARGE + 1);
	AQE_AUTO_FD int fd = -1;
	struct audit_row r = request();
	struct aqe_err e = AQE_ERR_INIT;
	char none[16];

	ck_assert_ptr_nonnull(meta);
	memset(meta, 'm', LARGE);
	r.meta = meta;
	shim_journal_emit(&r, &want);
	ck_assert(shim_journal_send(path, &r, 1));
	ck_assert_uint_eq(receive(none, sizeof(none), &fd), 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GET_SEALS),
			 F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(aqe_fs_read_fd(fd, &got, &e), 0);
	ck_assert_uint_eq(got.len, want.len);
	ck_assert_int_eq(memcmp(got.p, want.p, want.len), 0);
}
END_TEST

/* A journal that does not read: sends fail at once, and nobody waits. */
START_TEST(journal_send__never_waits)
{
	const struct audit_row r = request();
	int sent = 0;

	while (sent < 100000 && shim_journal_send(path, &r, 1))
		sent++;
	ck_assert_int_gt(sent, 0);
	ck_assert_int_lt(sent, 100000);
}
END_TEST

START_TEST(journal_send__without_journal)
{
	const struct audit_row r = request();
	char long_path[256];

	ck_assert(!shim_journal_send("/nonexistent/socket", &r, 1));
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert(!shim_journal_send(long_path, &r, 1));
	shim_journal_row(&r); /* whatever this host has */
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_journal");
	TCase *t = tcase_create("journal");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, journal_send__has_every_field);
	tcase_add_test(t, journal_send__rows_of_the_spool);
	tcase_add_loop_test(t, journal_emit__priority, 0, (int)AQE_COUNT(PRIORITIES));
	tcase_add_test(t, journal_emit__newlines_are_counted);
	tcase_add_test(t, journal_send__large_rows_by_file);
	tcase_add_test(t, journal_send__never_waits);
	tcase_add_test(t, journal_send__without_journal);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
