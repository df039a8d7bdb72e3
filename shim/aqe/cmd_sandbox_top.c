/* SPDX-License-Identifier: MIT */
/* aqe sandbox top: the live view. Plain escape sequences that every terminal of the last decades
 * knows; the size is asked before each picture, so that a resize is followed. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_when.h"
#include "shim/aqe/sandbox_view.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define OUT_MAX     ((size_t)4 << 20)
#define INTERVAL_MS 2000
#define ROWS_MIN    4 /* two lines above the table, its heading, one row */

static const struct aqe_cli_opt OPTS[] = {
	{ "interval", 0, "TIME", "between two pictures (default 2s)", SHIM_SB_INTERVAL },
	{ "sort", 0, "ORDER", "name, cpu (default), memory, pids, disk, net", SHIM_SB_SORT },
	{ "count", 'n', "N", "so many pictures, then end", SHIM_SB_COUNT },
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe sandbox top",
	.synopsis = "[--sort ORDER] [--interval TIME] [-n N]",
	.about = "Keys: n c m p d b sort by name, CPU, memory, processes, disk, bytes of the "
		 "network; arrows or j and k choose; s stops the chosen one, K kills it; a shows "
		 "also what does not run; q ends.",
	.opts = OPTS,
};

struct top {
	struct shim_sb *sb;
	struct shim_view v;
	enum shim_view_order order;
	bool all, raw, quit;
	size_t chosen, shown_from;
	int64_t interval_ms, pictures; /* still to show; -1: no end */
	char note[160];
	struct termios before;
};

/* ---- the terminal ---- */

/* The other screen, no cursor, and no line goes on in the next one when the screen is narrow. */
#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l"
#define LEAVE "\x1b[?7h\x1b[?25h\x1b[?1049l"

static struct termios *restore_to; /* for the signal handler: set once, before it is installed */

static void on_end(int sig)
{
	/* async-signal-safe: tcsetattr(3), write(2) */
	if (restore_to) {
		(void)tcsetattr(STDIN_FILENO, TCSANOW, restore_to);
		(void)!write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
	}
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static int enter(struct top *t, struct aqe_err *e)
{
	struct termios raw;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "no terminal: use aqe sandbox stats --watch instead");
	if (tcgetattr(STDIN_FILENO, &t->before) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "ask the terminal");
	raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	restore_to = &t->before;
	(void)signal(SIGINT, on_end);
	(void)signal(SIGTERM, on_end);
	(void)signal(SIGHUP, on_end);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "set the terminal");
	t->raw = true;
	(void)fputs(ENTER, stdout);
	return 0;
}

static void leave(struct top *t)
{
	if (!t->raw)
		return;
	(void)fputs(LEAVE, stdout);
	(void)fflush(stdout);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before); /* nothing else can be done */
}

static void size_of(unsigned *rows, unsigned *columns)
{
	struct winsize w = { 0, 0, 0, 0 };

	*rows = 24;
	*columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0) {
		*rows = w.ws_row;
		*columns = w.ws_col;
	}
}

/* ---- the picture ---- */

static void add_head(const struct top *t, unsigned columns, struct aqe_buf *out)
{
	char line[512], now[SHIM_WHEN_TEXT];
	double cpu = 0;
	uint64_t memory = 0;
	size_t running = 0;

	for (size_t i = 0; i < t->v.n; i++) {
		cpu += t->v.rows[i].cpu;
		memory += t->v.rows[i].usage.memory;
		running += t->v.rows[i].pid != 0;
	}
	shim_when_absolute((int64_t)time(NULL) * SHIM_NS_PER_S, now);
	(void)snprintf(line, sizeof(line),
		       "aqe sandbox top  %s UTC  %zu running, %zu shown  cpu %.1f %%  "
		       "memory %.1f MB  by %s",
		       now, running, t->v.n, cpu, (double)memory / 1048576.0,
		       SHIM_ORDER_NAMES[t->order]);
	aqe_buf_addf(out, "%.*s\x1b[K\r\n", (int)columns, line);
	aqe_buf_addf(out, "%.*s\x1b[K\r\n", (int)columns,
		     t->note[0] ? t->note
				: "n c m p d b sort  j k choose  s stop  K kill  a all  q quit");
}

static void add_line(const char *p, size_t len, bool mark, bool colour, struct aqe_buf *out)
{
	static const char *const BEFORE[2][2] = { { " ", ">" }, { "", "\x1b[7m" } };

	(void)aqe_buf_puts(out, BEFORE[colour][mark]);
	(void)aqe_buf_add(out, p, len);
	(void)aqe_buf_puts(out, mark && colour ? "\x1b[0m\x1b[K\r\n" : "\x1b[K\r\n");
}

/* Lines of the table, with the chosen one marked; no longer than the screen. */
static void add_table(struct top *t, unsigned rows, const char *text, bool colour,
		      struct aqe_buf *out)
{
	size_t room = rows > ROWS_MIN ? rows - ROWS_MIN : 1, line = 0;

	if (t->chosen >= t->v.n)
		t->chosen = t->v.n ? t->v.n - 1 : 0;
	if (t->chosen < t->shown_from)
		t->shown_from = t->chosen;
	if (t->chosen >= t->shown_from + room)
		t->shown_from = t->chosen - room + 1;
	for (const char *p = text; *p; line++) {
		size_t len = strcspn(p, "\n");

		if (line == 0 || (line > t->shown_from && line <= t->shown_from + room))
			add_line(p, len, line > 0 && line - 1 == t->chosen, colour, out);
		p += len + (p[len] == '\n');
	}
}

static int draw(struct top *t, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf table = AQE_BUF_INIT(OUT_MAX);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUT_MAX);
	bool colour = shim_audit_colour();
	unsigned rows, columns;
	int rc;

	size_of(&rows, &columns);
	rc = shim_view_text(&t->v, columns > 2 ? columns - 1 : 1, false, &table, e);
	if (rc < 0)
		return rc;
	(void)aqe_buf_puts(&out, "\x1b[H");
	add_head(t, columns, &out);
	add_table(t, rows, aqe_buf_str(&table), colour, &out);
	(void)aqe_buf_puts(&out, "\x1b[J");
	return shim_sb_print(&out) ? 0 : aqe_err_set(e, AQE_E_SYS, 0, "the terminal is closed");
}

/* ---- keys ---- */

static void end_chosen(struct top *t, bool kill)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_want w;
	int rc;

	if (t->chosen >= t->v.n)
		return;
	rc = shim_box_open(t->v.arena, &t->sb->place, t->v.rows[t->chosen].name, &b, &e);
	if (rc == 0)
		rc = shim_box_want(&b, &w, &e);
	if (rc == 0) {
		w.up = false;
		w.kill = kill;
		/* only wished: waiting would freeze the view */
		rc = shim_box_set_want(&b, &w, &e);
	}
	(void)snprintf(t->note, sizeof(t->note), rc < 0 ? "%s: %.100s" : "%s: asked to %s",
		       t->v.rows[t->chosen].name,
		       rc < 0 ? e.text
		       : kill ? "end now"
			      : "stop");
}

static void key(struct top *t, char c)
{
	static const struct {
		char key;
		enum shim_view_order order;
	} ORDERS[] = { { 'n', SHIM_ORDER_NAME },   { 'c', SHIM_ORDER_CPU },
		       { 'm', SHIM_ORDER_MEMORY }, { 'p', SHIM_ORDER_PIDS },
		       { 'd', SHIM_ORDER_DISK },   { 'b', SHIM_ORDER_NET } };

	for (size_t i = 0; i < AQE_COUNT(ORDERS); i++) {
		if (c == ORDERS[i].key) {
			t->order = ORDERS[i].order;
			shim_view_sort(&t->v, t->order);
		}
	}
	t->note[0] = '\0';
	if (c == 'q' || c == 4)
		t->quit = true;
	else if (c == 'j')
		t->chosen++;
	else if (c == 'k' && t->chosen > 0)
		t->chosen--;
	else if (c == 'a')
		t->all = !t->all;
	else if (c == 's' || c == 'K')
		end_chosen(t, c == 'K');
}

/* An arrow is ESC [ A or B. */
static void keys(struct top *t, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == 0x1b && i + 2 < n && p[i + 1] == '[') {
			if (p[i + 2] == 'A')
				key(t, 'k');
			if (p[i + 2] == 'B')
				key(t, 'j');
			i += 2;
		} else {
			key(t, p[i]);
		}
	}
}

static int64_t now_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Until the next picture is due; keys and resizes draw at once. */
static int wait_for_keys(struct top *t, struct aqe_err *e)
{
	int64_t due = now_ms() + t->interval_ms, left;
	int rc = 0;

	while (rc == 0 && !t->quit && (left = due - now_ms()) > 0) {
		struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
		/* a resize ends the wait with EINTR only where its signal is handled; so look again
		 * four times a second */
		int n = poll(&p, 1, (int)(left < 250 ? left : 250));
		char data[64];
		ssize_t got = n > 0 ? read(STDIN_FILENO, data, sizeof(data)) : -1;

		if (n > 0 && got <= 0) {
			t->quit = true; /* the terminal went away */
			return 0;
		}
		if (got > 0)
			keys(t, data, (size_t)got);
		rc = draw(t, e);
	}
	return rc;
}

static int run(struct top *t, struct aqe_err *e)
{
	int rc = 0;

	while (rc == 0 && !t->quit && t->pictures != 0) {
		struct shim_view next;

		rc = shim_view_take(t->sb, t->v.arena ? &t->v : NULL, t->all, NULL, &next, e);
		if (rc < 0)
			return rc;
		shim_view_done(&t->v);
		t->v = next;
		shim_view_sort(&t->v, t->order);
		rc = draw(t, e);
		t->pictures -= t->pictures > 0;
		if (rc == 0 && t->pictures != 0)
			rc = wait_for_keys(t, e);
	}
	return rc;
}

static int take_options(struct top *t, struct aqe_err *e)
{
	const char *const *v = t->sb->value;
	int64_t ns = INTERVAL_MS * INT64_C(1000000);
	uint64_t n = 0;
	size_t i = SHIM_ORDER_CPU;

	if (v[SHIM_SB_SORT])
		for (i = 0; i < SHIM_ORDERS && !aqe_str_eq(v[SHIM_SB_SORT], SHIM_ORDER_NAMES[i]);)
			i++;
	if (i == SHIM_ORDERS)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--sort: '%.40s' is no order",
				   v[SHIM_SB_SORT]);
	t->order = (enum shim_view_order)i;
	if (v[SHIM_SB_INTERVAL] &&
	    (!shim_duration_parse(v[SHIM_SB_INTERVAL], &ns) || ns < 100000000))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--interval: '%.40s' is not 100ms or more",
				   v[SHIM_SB_INTERVAL]);
	t->interval_ms = ns / 1000000;
	if (v[SHIM_SB_COUNT] && !aqe_parse_u64(v[SHIM_SB_COUNT], INT32_MAX, &n))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--count: '%.40s' is no number",
				   v[SHIM_SB_COUNT]);
	t->pictures = v[SHIM_SB_COUNT] ? (int64_t)n : -1;
	return 0;
}

int shim_sandbox_top(int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	static struct top t; /* the signal handler looks at the terminal's settings in it */
	int rc = shim_sb_begin(&sb, &CMD, SHIM_SB_OPERANDS, 0, 0, argc, argv);

	if (rc >= 0)
		return rc;
	t.sb = &sb;
	rc = take_options(&t, &e);
	if (rc == 0)
		rc = enter(&t, &e);
	if (rc == 0)
		rc = run(&t, &e);
	leave(&t);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : SHIM_EXIT_OK;
	shim_view_done(&t.v);
	shim_sb_done(&sb);
	return rc;
}
