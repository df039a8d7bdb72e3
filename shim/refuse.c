/* SPDX-License-Identifier: MIT */
#include "shim/refuse.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

/* What podman, docker and containerd search for, in any letter case, to change exit status and
 * message. The error texts of the C library bring most of them. */
static const struct {
	const char *magic, *instead;
} phrases[] = {
	{ "permission denied", "access denied" },
	{ "operation not permitted", "not allowed by the kernel" },
	{ "no such file or directory", "not found" },
	{ "executable file not found", "executable is missing" },
	{ "open executable", "open the executable" },
	{ "not a directory", "no directory" },
	{ "is a directory", "names a directory" },
};

static size_t magic_at(const char *s, const char **ret_instead)
{
	for (size_t i = 0; i < AQE_COUNT(phrases); i++) {
		size_t n = strlen(phrases[i].magic);

		if (strncasecmp(s, phrases[i].magic, n) == 0) {
			*ret_instead = phrases[i].instead;
			return n;
		}
	}
	return 0;
}

/* Takes back the bytes of a character that was cut in the middle. */
static size_t whole_chars(const char *p, size_t n)
{
	size_t bad = n;

	if (aqe_utf8_ok(p, n, &bad))
		return n;
	return n - bad < 4 ? bad : n;
}

void shim_refuse_text(const char *text, struct aqe_buf *b)
{
	static const char more[] = "...";
	size_t max = SHIM_REFUSE_MAX - (sizeof(more) - 1);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(4 * SHIM_REFUSE_MAX);
	size_t n;

	while (*text && out.len <= SHIM_REFUSE_MAX) {
		const char *instead = NULL;
		size_t skip = magic_at(text, &instead);

		if (skip) {
			aqe_buf_puts(&out, instead);
			text += skip;
			continue;
		}
		aqe_buf_putc(&out, (unsigned char)*text < ' ' && *text != '\n' ? ' ' : *text);
		text++;
	}
	n = out.len;
	while (n && out.p[n - 1] == '\n')
		n--;
	if (n <= SHIM_REFUSE_MAX) {
		aqe_buf_add(b, aqe_buf_str(&out), n);
		return;
	}
	aqe_buf_add(b, out.p, whole_chars(out.p, max));
	aqe_buf_puts(b, more);
}

void shim_refuse_record(const char *text, bool as_text, int64_t now_s, struct aqe_buf *b)
{
	char when[AQE_TIME_TEXT];

	aqe_time_format(now_s, when);
	aqe_buf_puts(b, as_text ? "level=error msg=" : "{\"level\":\"error\",\"msg\":");
	aqe_json_emit_str(b, text);
	if (as_text)
		aqe_buf_addf(b, " time=\"%s\"\n", when);
	else
		aqe_buf_addf(b, ",\"time\":\"%s\"}\n", when);
}

/* Podman reads the whole file as one object and never empties it: O_TRUNC. No link is followed: the
 * path came from the command line of a process that may run as root. */
static void write_log(const char *path, const struct aqe_buf *record)
{
	AQE_AUTO_FD int fd = -1;
	struct stat st;
	struct aqe_err ignored = AQE_ERR_INIT;

	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || ftruncate(fd, 0) < 0)
		return;
	(void)!aqe_fs_write_all(fd, record->p, record->len, &ignored);
}

void shim_refuse(const struct shim_log *log, const char *text)
{
	AQE_AUTO_BUF struct aqe_buf clean = AQE_BUF_INIT(2 * SHIM_REFUSE_MAX);
	AQE_AUTO_BUF struct aqe_buf record = AQE_BUF_INIT(8 * SHIM_REFUSE_MAX);
	AQE_AUTO_BUF struct aqe_buf line = AQE_BUF_INIT(2 * SHIM_REFUSE_MAX);
	struct aqe_err ignored = AQE_ERR_INIT;
	int64_t now = AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self);

	shim_refuse_text(text, &clean);
	shim_refuse_record(aqe_buf_str(&clean), log->text, now, &record);
	if (log->path && record.p)
		write_log(log->path, &record);
	aqe_buf_addf(&line, "aqe-shim: %s\n", aqe_buf_str(&clean));
	(void)!aqe_fs_write_all(STDERR_FILENO, aqe_buf_str(&line), line.len, &ignored);
}
