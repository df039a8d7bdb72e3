/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/row.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define HEAD_MAX   64 /* time, stream, tag */
#define RECORD_MAX ((size_t)1 << 20)
#define READ_BYTES ((size_t)64 * 1024)

const char *const SHIM_LOG_NAMES[SHIM_LOG_FILES] = { "log.2", "log.1", "log" };
static const char *const STREAM_NAMES[SHIM_STREAMS] = { "stdout", "stderr" };

/* ---- writing ---- */

int shim_log_open(struct shim_log_writer *w, int dirfd, struct aqe_err *e)
{
	struct stat st;
	int rc;

	w->dirfd = dirfd;
	w->fd = -1;
	w->part[SHIM_STDOUT].len = w->part[SHIM_STDERR].len = 0;
	rc = aqe_fs_open_beneath(dirfd, SHIM_LOG_FILE, O_WRONLY | O_APPEND | O_CREAT, 0600, &w->fd,
				 e);
	if (rc < 0)
		return aqe_err_wrap(e, "log");
	w->size = fstat(w->fd, &st) == 0 ? st.st_size : 0;
	return 0;
}

static int rotate(struct shim_log_writer *w, struct aqe_err *e)
{
	for (size_t i = 0; i + 1 < SHIM_LOG_FILES; i++) {
		if (renameat(w->dirfd, SHIM_LOG_NAMES[i + 1], w->dirfd, SHIM_LOG_NAMES[i]) < 0 &&
		    errno != ENOENT)
			return aqe_err_set(e, AQE_E_SYS, errno, "rotate the log");
	}
	aqe_cleanup_fd(&w->fd);
	w->fd = -1;
	w->size = 0;
	return aqe_fs_open_beneath(w->dirfd, SHIM_LOG_FILE, O_WRONLY | O_APPEND | O_CREAT, 0600,
				   &w->fd, e);
}

/* One record, one write: a reader never sees half of one. */
static int put(struct shim_log_writer *w, enum shim_stream stream, bool partial, struct aqe_err *e)
{
	char record[HEAD_MAX + SHIM_LOG_LINE_MAX + 2], when[AUDIT_TIME_TEXT];
	struct timespec ts = { 0, 0 };
	size_t len = w->part[stream].len;
	int head, rc = 0;

	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail */
	audit_time_format((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec, when);
	head = snprintf(record, HEAD_MAX, "%s %s %c ", when, STREAM_NAMES[stream],
			partial ? 'P' : 'F');
	memcpy(record + head, w->part[stream].text, len);
	record[(size_t)head + len] = '\n';
	len += (size_t)head + 1;
	w->part[stream].len = 0;
	if (w->size + (int64_t)len > SHIM_LOG_BYTES_MAX)
		rc = rotate(w, e);
	if (rc == 0)
		rc = aqe_fs_write_all(w->fd, record, len, e);
	w->size += (int64_t)len;
	return rc < 0 ? aqe_err_wrap(e, "log") : 0;
}

int shim_log_take(struct shim_log_writer *w, enum shim_stream stream, const char *p, size_t n,
		  struct aqe_err *e)
{
	int rc = 0;

	while (n > 0 && rc == 0) {
		const char *end = memchr(p, '\n', n);
		size_t line = end ? (size_t)(end - p) : n;
		size_t room = SHIM_LOG_LINE_MAX - w->part[stream].len;
		size_t take = line < room ? line : room;

		memcpy(w->part[stream].text + w->part[stream].len, p, take);
		w->part[stream].len += take;
		p += take;
		n -= take;
		if (end && take == line) {
			p++;
			n--;
			rc = put(w, stream, false, e);
		} else if (w->part[stream].len == SHIM_LOG_LINE_MAX) {
			rc = put(w, stream, true, e);
		}
	}
	return rc;
}

void shim_log_close(struct shim_log_writer *w)
{
	for (int i = 0; i < SHIM_STREAMS && w->fd >= 0; i++) {
		if (w->part[i].len > 0)
			(void)!put(w, (enum shim_stream)i, true, NULL); /* the last chance */
	}
	aqe_cleanup_fd(&w->fd);
	w->fd = -1;
}

/* ---- one record ---- */

static bool parse_stream(const char *p, size_t len, enum shim_stream *ret)
{
	for (int i = 0; i < SHIM_STREAMS; i++) {
		if (len == strlen(STREAM_NAMES[i]) && memcmp(p, STREAM_NAMES[i], len) == 0) {
			*ret = (enum shim_stream)i;
			return true;
		}
	}
	return false;
}

/* RFC 3339 with any number of digits behind the second, Z or an offset, as Go writes it. */
static int64_t parse_time(const char *p, size_t len)
{
	char text[32], offset_text[8];
	int64_t ns = 0, fraction = 0, scale = 100000000;
	size_t at = 19, sign_at;

	if (len < 20 || len > 40)
		return 0;
	memcpy(text, p, 19);
	memcpy(text + 19, "Z", 2);
	if (!audit_time_parse(text, &ns))
		return 0;
	if (p[at] == '.') {
		for (at++; at < len && p[at] >= '0' && p[at] <= '9'; at++, scale /= 10)
			fraction += (p[at] - '0') * scale;
	}
	sign_at = at;
	if (len - at == 6 && (p[at] == '+' || p[at] == '-')) {
		uint64_t h, m;

		memcpy(offset_text, p + at + 1, 5);
		offset_text[2] = '\0';
		offset_text[5] = '\0';
		h = (uint64_t)(offset_text[0] - '0') * 10 + (uint64_t)(offset_text[1] - '0');
		m = (uint64_t)(offset_text[3] - '0') * 10 + (uint64_t)(offset_text[4] - '0');
		if (h > 23 || m > 59)
			return 0;
		ns -= (p[sign_at] == '-' ? -1 : 1) * (int64_t)(h * 3600 + m * 60) * 1000000000;
	}
	return ns + fraction;
}

static bool parse_k8s(const char *line, size_t len, struct shim_log_record *ret)
{
	const char *word[3];
	size_t at = 0, word_len[3];

	for (int i = 0; i < 3; i++) {
		const char *space = memchr(line + at, ' ', len - at);

		if (!space && i < 2)
			return false;
		word[i] = line + at;
		word_len[i] = space ? (size_t)(space - word[i]) : len - at;
		at += word_len[i] + (space ? 1 : 0);
	}
	ret->time_ns = parse_time(word[0], word_len[0]);
	if (!ret->time_ns || !parse_stream(word[1], word_len[1], &ret->stream) || word_len[2] < 1 ||
	    (word[2][0] != 'F' && word[2][0] != 'P'))
		return false;
	ret->partial = word[2][0] == 'P';
	ret->text = line + at;
	ret->len = len - at;
	return true;
}

/* {"log":"text\n","stream":"stdout","time":"..."} */
static bool parse_json_file(const char *line, size_t len, char *scratch,
			    struct shim_log_record *ret)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(len * 4 + 65536);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *root = NULL;
	const struct aqe_json *text;
	const char *stream, *when;

	limits.string = RECORD_MAX;
	if (!a || aqe_json_parse(a, line, len, &limits, &root, NULL) < 0)
		return false;
	text = aqe_json_get(root, "log");
	stream = aqe_json_str(aqe_json_get(root, "stream"));
	when = aqe_json_str(aqe_json_get(root, "time"));
	if (!aqe_json_str(text) || !stream || !parse_stream(stream, strlen(stream), &ret->stream))
		return false;
	ret->time_ns = when ? parse_time(when, strlen(when)) : 0;
	ret->len = text->len;
	if (ret->len > len)
		return false; /* decoding never makes it longer */
	memcpy(scratch, text->text, ret->len);
	ret->partial = ret->len == 0 || scratch[ret->len - 1] != '\n';
	ret->len -= !ret->partial;
	ret->text = scratch;
	return true;
}

bool shim_log_parse(const char *line, size_t len, char *scratch, struct shim_log_record *ret)
{
	if (len == 0 || len > RECORD_MAX)
		return false;
	return line[0] == '{' ? parse_json_file(line, len, scratch, ret)
			      : parse_k8s(line, len, ret);
}

/* ---- files ---- */

/* Reads lines of `fd` from *at on; *at moves behind the last whole line. */
struct lines {
	char *data, *scratch; /* RECORD_MAX each */
	size_t len;
};

static void lines_done(struct lines *l)
{
	free(l->data);
	free(l->scratch);
}
#define AUTO_LINES AQE_CLEANUP(lines_done)

static int lines_new(struct lines *l, struct aqe_err *e)
{
	l->data = malloc(RECORD_MAX);
	l->scratch = malloc(RECORD_MAX);
	return l->data && l->scratch ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a log");
}

/* Hands out the whole lines in the buffer; the rest moves to its beginning. */
static int hand_out(struct lines *l, int64_t *at, shim_log_fn *fn, void *arg)
{
	size_t from = 0;
	int rc = 0;

	while (rc == 0) {
		const char *end = memchr(l->data + from, '\n', l->len - from);
		struct shim_log_record r;
		size_t len;

		if (!end)
			break;
		len = (size_t)(end - l->data) - from;
		if (shim_log_parse(l->data + from, len, l->scratch, &r))
			rc = fn(arg, &r);
		from += len + 1;
		*at += (int64_t)len + 1;
	}
	if (from == 0 && l->len == RECORD_MAX) { /* no record is that long: damage */
		*at += (int64_t)l->len;
		from = l->len;
	}
	memmove(l->data, l->data + from, l->len - from);
	l->len -= from;
	return rc;
}

static int read_file(int fd, int64_t *at, shim_log_fn *fn, void *arg, struct aqe_err *e)
{
	AUTO_LINES struct lines l = { NULL, NULL, 0 };
	int64_t pos = *at;
	int rc = lines_new(&l, e);

	while (rc == 0) {
		size_t room = RECORD_MAX - l.len;
		ssize_t n = pread(fd, l.data + l.len, room < READ_BYTES ? room : READ_BYTES, pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "read a log");
		if (n == 0)
			return 0;
		pos += n;
		l.len += (size_t)n;
		rc = hand_out(&l, at, fn, arg);
	}
	return rc;
}

struct pick {
	const struct shim_log_query *q;
	int64_t n, skip; /* lines seen; to leave out */
	shim_log_fn *fn;
	void *arg;
};

static bool is_wanted(const struct pick *p, const struct shim_log_record *r)
{
	return p->q->since_ns == 0 || r->time_ns >= p->q->since_ns;
}

static int count_line(void *arg, const struct shim_log_record *r)
{
	struct pick *p = arg;

	if (is_wanted(p, r) && !r->partial)
		p->n++;
	return 0;
}

static int pass_line(void *arg, const struct shim_log_record *r)
{
	struct pick *p = arg;

	if (!is_wanted(p, r))
		return 0;
	if (p->skip > 0) {
		p->skip -= !r->partial;
		return 0;
	}
	return p->fn(p->arg, r);
}

static int each_file(int dirfd, const char *const *files, size_t n, shim_log_fn *fn, void *arg,
		     struct shim_log_cursor *at, struct aqe_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		AQE_AUTO_FD int fd = -1;
		int64_t offset = 0;
		struct stat st;

		rc = aqe_fs_open_beneath(dirfd, files[i], O_RDONLY, 0, &fd, e);
		if (rc == AQE_E_ABSENT) {
			rc = 0;
			continue;
		}
		if (rc == 0)
			rc = aqe_fs_check(fd, AQE_FS_REGULAR, SIZE_MAX, files[i], &st, e);
		if (rc == 0)
			rc = read_file(fd, &offset, fn, arg, e);
		if (rc == 0 && i + 1 == n)
			*at = (struct shim_log_cursor){ offset, st.st_ino };
	}
	return rc;
}

int shim_log_read(int dirfd, const char *const *files, size_t n, const struct shim_log_query *q,
		  shim_log_fn *fn, void *arg, struct shim_log_cursor *ret_at, struct aqe_err *e)
{
	struct pick p = { q, 0, 0, fn, arg };
	struct shim_log_cursor at = { 0, 0 };
	int rc = 0;

	if (q->tail >= 0) {
		rc = each_file(dirfd, files, n, count_line, &p, &at, e);
		p.skip = p.n > q->tail ? p.n - q->tail : 0;
	}
	if (rc == 0)
		rc = each_file(dirfd, files, n, pass_line, &p, &at, e);
	if (ret_at)
		*ret_at = at;
	return rc;
}

int shim_log_more(int dirfd, const char *const *files, size_t n, struct shim_log_cursor *at,
		  shim_log_fn *fn, void *arg, struct aqe_err *e)
{
	int rc = 0;

	for (size_t i = n < 2 ? 0 : n - 2; i < n && rc == 0; i++) {
		AQE_AUTO_FD int fd = -1;
		struct stat st;

		rc = aqe_fs_open_beneath(dirfd, files[i], O_RDONLY, 0, &fd, e);
		if (rc == AQE_E_ABSENT) {
			rc = 0;
			continue;
		}
		if (rc == 0)
			rc = aqe_fs_check(fd, AQE_FS_REGULAR, SIZE_MAX, files[i], &st, e);
		if (rc < 0)
			return rc;
		if (i + 1 < n && st.st_ino != at->inode)
			continue; /* not the one we were in */
		if (st.st_ino != at->inode)
			*at = (struct shim_log_cursor){ 0, st.st_ino };
		rc = read_file(fd, &at->offset, fn, arg, e);
		if (rc == 0 && i + 1 < n)
			*at = (struct shim_log_cursor){ 0, 0 };
	}
	return rc;
}
