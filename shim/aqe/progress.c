/* SPDX-License-Identifier: MIT */
#include "shim/aqe/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WIDTH    30
#define EVERY_MS 100

static int64_t mono_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void shim_progress_init(struct shim_progress *p, const char *label, bool force)
{
	*p = (struct shim_progress){ .label = label, .began_ms = mono_ms() };
	p->shown = force || isatty(STDERR_FILENO);
}

static void draw(struct shim_progress *p, uint64_t done, uint64_t total)
{
	static const char FULL[WIDTH + 1] = "##############################",
				       EMPTY[WIDTH + 1] = "..............................";
	const int64_t seconds = (mono_ms() - p->began_ms) / 1000;
	const uint64_t part = total && done < total ? done : total;
	const int n = total ? (int)((double)part / (double)total * WIDTH) : 0;

	if (total)
		(void)fprintf(stderr, "\r%s [%.*s%.*s] %3d %% %llu/%llu %llds ", p->label, n, FULL,
			      WIDTH - n, EMPTY, (int)((double)part / (double)total * 100),
			      (unsigned long long)done, (unsigned long long)total,
			      (long long)seconds);
	else
		(void)fprintf(stderr, "\r%s %llu %llds ", p->label, (unsigned long long)done,
			      (long long)seconds);
	(void)fflush(stderr);
	p->drawn = true;
	p->drawn_ms = mono_ms();
}

void shim_progress_update(struct shim_progress *p, uint64_t done, uint64_t total)
{
	if (p->shown && (!p->drawn || mono_ms() - p->drawn_ms >= EVERY_MS))
		draw(p, done, total);
}

void shim_progress_end(struct shim_progress *p, uint64_t done, uint64_t total)
{
	if (!p->shown)
		return;
	draw(p, done, total);
	(void)fputc('\n', stderr);
	p->shown = false;
}
