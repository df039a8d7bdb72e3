/* SPDX-License-Identifier: MIT */
/* What the tests of `aqe audit` share: a log in the command's folder, filled with rows of fixed
 * times, and a call of one of its commands. */
#ifndef AQE_UNIT_AUDIT_UTIL_H
#define AQE_UNIT_AUDIT_UTIL_H

#include "audit/checkpoint.h"
#include "audit/log.h"
#include "shim/aqe/audit_args.h"
#include "shim/aqe/cmds.h"
#include "tests/unit/cmd_util.h"

#define S     INT64_C(1000000000)
#define START (INT64_C(1769904000) * S) /* 2026-02-01T00:00:00Z */

static inline const char *log_dir(void)
{
	return cmd_path("log");
}

static inline struct audit_opts log_opts(void)
{
	return (struct audit_opts){ .dir = log_dir(), .mode = AUDIT_WRITE };
}

/* Appends to the log, which is made when absent. */
static inline void log_add(struct audit_row *rows, size_t n)
{
	const struct audit_opts o = log_opts();
	AUDIT_AUTO_LOG struct audit_log *log = NULL;

	ck_assert_ok(audit_open(&o, &log, &err), err);
	if (n)
		ck_assert_ok(audit_append_many(log, rows, n, &err), err);
}

static inline void log_key(void)
{
	const struct audit_opts o = log_opts();

	ck_assert_ok(audit_key_make(&o, &err), err);
}

/* Calls "aqe audit WORDS... --log LOG". */
static inline int audit_run(const char *const *words)
{
	const char *all[24] = { NULL };
	size_t n = 0;

	while (words[n]) {
		ck_assert_uint_lt(n, 20);
		all[n] = words[n];
		n++;
	}
	all[n] = "--log";
	all[n + 1] = log_dir();
	return cmd_run(shim_cmd_audit, "audit", all);
}
#define AUDIT(...) audit_run((const char *const[]){ __VA_ARGS__, NULL })

/* Puts "#" in the place of what differs from run to run: 64 and more hex digits, and the values of
 * members `made` and `created`. */
static inline void mask(const struct aqe_buf *from, struct aqe_buf *to)
{
	static const char *const times[] = { "\"made\":\"", "\"created\":\"" };
	const char *p = aqe_buf_str(from);

	while (*p) {
		const size_t hex = strspn(p, "0123456789abcdef");
		bool cut = false;

		if (hex >= 64) {
			(void)aqe_buf_putc(to, '#');
			p += hex;
			continue;
		}
		for (size_t i = 0; i < AQE_COUNT(times); i++) {
			const size_t n = strlen(times[i]);

			if (strncmp(p, times[i], n) != 0)
				continue;
			(void)aqe_buf_addf(to, "%s#", times[i]);
			p += n + strcspn(p + n, "\"");
			cut = true;
		}
		if (!cut && hex) {
			(void)aqe_buf_add(to, p, hex);
			p += hex;
		} else if (!cut) {
			(void)aqe_buf_putc(to, *p++);
		}
	}
	ck_assert_ok(aqe_buf_ok(to, &err), err);
}

/* The masked output against tests/golden/NAME; AQE_GOLDEN_UPDATE writes it anew. */
static inline void check_golden(const char *name)
{
	const char *path = aqe_arena_fmt(arena, "tests/golden/%s", name);
	AQE_AUTO_BUF struct aqe_buf got = AQE_BUF_INIT(RW_FILE_MAX);
	AQE_AUTO_BUF struct aqe_buf want = AQE_BUF_INIT(RW_FILE_MAX);

	mask(&out, &got);
	if (getenv("AQE_GOLDEN_UPDATE")) {
		FILE *f = fopen(path, "we");

		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(fwrite(aqe_buf_str(&got), 1, got.len, f), got.len);
		ck_assert_int_eq(fclose(f), 0);
	}
	rw_read_file(path, &want);
	ck_assert_msg(aqe_str_eq(aqe_buf_str(&got), aqe_buf_str(&want)),
		      "%s differs; after a wanted change: make golden\n%s", path,
		      aqe_buf_str(&got));
}

#endif
