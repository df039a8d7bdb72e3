/* SPDX-License-Identifier: MIT */
/* Mode observe: the engine's call goes on as it came; what the profile would have done is written
 * down. Nothing here may fail a call or print. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

#define LOG_NAME     "decisions.jsonl"
#define LOG_OLD      "decisions.jsonl.1"
#define LOG_MAX      ((off_t)1 << 20)
#define FINDINGS_MAX 64

int shim_observe_pass(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;
	char **argv;

	if (rt->low.fd >= 0 || shim_low_any(rt, &e) == 0) {
		argv = shim_argv_original(rt->arena, &rt->av, rt->low.path);
		/* every descriptor of ours is close-on-exec; the caller's stay as they are */
		if (argv)
			(void)fexecve(rt->low.fd, argv, rt->envp);
		aqe_err_set(&e, AQE_E_SYS, errno, "execute low-level runtime '%s'", rt->low.path);
	}
	return shim_rt_refuse(rt, &e);
}

static void put_str(struct aqe_buf *b, const char *name, const char *value)
{
	aqe_buf_addf(b, "\"%s\":", name);
	if (value)
		aqe_json_emit_str(b, value);
	else
		aqe_buf_puts(b, "null");
}

static void put_findings(struct aqe_buf *b, const struct hard_report *r)
{
	const struct hard_finding *f = r->first;

	aqe_buf_puts(b, ",\"findings\":[");
	for (int i = 0; f && i < FINDINGS_MAX; f = f->next, i++) {
		aqe_buf_puts(b, i ? ",{" : "{");
		put_str(b, "property", HARDENING_PROFILE[f->prop].id);
		aqe_buf_putc(b, ',');
		put_str(b, "pointer", f->pointer);
		aqe_buf_putc(b, ',');
		put_str(b, "found", f->found);
		aqe_buf_putc(b, ',');
		put_str(b, "wanted", f->wanted);
		aqe_buf_putc(b, '}');
	}
	aqe_buf_putc(b, ']');
}

/* "rewrite" also for a document that conforms already: the bytes are always ours. */
static void put_line(struct shim_rt *rt, const struct shim_judged *j, const struct aqe_err *fault,
		     struct aqe_buf *b)
{
	char when[AQE_TIME_TEXT];

	aqe_time_format(AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self), when);
	aqe_buf_putc(b, '{');
	put_str(b, "time", when);
	aqe_buf_putc(b, ',');
	put_str(b, "mode", "observe");
	aqe_buf_putc(b, ',');
	put_str(b, "verb", SHIM_VERBS[rt->av.verb].name);
	aqe_buf_putc(b, ',');
	put_str(b, "id", rt->av.id);
	aqe_buf_putc(b, ',');
	put_str(b, "engine", oci_engine_name(j->image.engine));
	aqe_buf_putc(b, ',');
	put_str(b, "image", j->image.known ? j->image.image_id : NULL);
	aqe_buf_putc(b, ',');
	put_str(b, "agentType", j->ctx.agent ? j->ctx.agent->type : NULL);
	aqe_buf_putc(b, ',');
	put_str(b, "would", j->out ? "rewrite" : "refuse");
	aqe_buf_putc(b, ',');
	put_str(b, "error", fault ? fault->text : NULL);
	put_findings(b, &j->report);
	aqe_buf_puts(b, "}\n");
}

void shim_observe_log(struct shim_rt *rt, const struct shim_judged *j, const struct aqe_err *fault)
{
	AQE_AUTO_BUF struct aqe_buf line = AQE_BUF_INIT((size_t)256 << 10);
	AQE_AUTO_FD int fd = -1;
	struct aqe_err ignored = AQE_ERR_INIT;
	struct stat st;

	put_line(rt, j, fault, &line);
	if (aqe_buf_ok(&line, NULL) < 0)
		return;
	if (fstatat(rt->state.fd, LOG_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_size + (off_t)line.len > LOG_MAX)
		(void)renameat(rt->state.fd, LOG_NAME, rt->state.fd, LOG_OLD);
	fd = openat(rt->state.fd, LOG_NAME,
		    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd >= 0)
		(void)!aqe_fs_write_all(fd, line.p, line.len, &ignored);
}
