/* SPDX-License-Identifier: MIT */
/* The clock port: tests inject their own. */
#ifndef AQE_CORE_CLOCK_H
#define AQE_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct aqe_clock {
	int64_t (*now_s)(void *self);   /* seconds since 1970-01-01T00:00:00Z */
	int64_t (*mono_ns)(void *self); /* CLOCK_MONOTONIC, ns */
	void *self;
};
/* The system's clocks. */
extern const struct aqe_clock AQE_CLOCK_SYSTEM;

/* "2026-01-31T23:59:59Z" (RFC 3339, UTC) + NUL. Years 1970 to 9999. */
#define AQE_TIME_TEXT 21
void aqe_time_format(int64_t s, char ret[AQE_TIME_TEXT]);
/* Reads "YYYY-MM-DD" (00:00:00 UTC) or "YYYY-MM-DDTHH:MM:SSZ"; false for anything else, including
 * dates that do not exist. */
bool aqe_time_parse(const char *text, int64_t *ret_s);

#endif
