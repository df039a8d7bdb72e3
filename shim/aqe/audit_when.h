/* SPDX-License-Identifier: MIT */
/* Times and durations as people write and read them. Pure; everything is UTC. */
#ifndef AQE_AQE_AUDIT_WHEN_H
#define AQE_AQE_AUDIT_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#define SHIM_NS_PER_S INT64_C(1000000000)

enum shim_when_side {
	SHIM_WHEN_SINCE, /* a day or second means its beginning */
	SHIM_WHEN_UNTIL, /* its end, so that all of it is included */
};
/* Reads a point in time:
 *   now, today, yesterday, all (all time: 0, or the end of time)
 *   1h, 90m, 1h30m, "2d ago"              so long before `now_ns`
 *   2026-01-31, 2026-01-31T12:30:00Z, 2026-01-31 12:30[:00[.5]][Z|+02:00]
 *   @1769860800                           seconds since 1970
 * False for anything else, for days that do not exist and for times before 1970. What is later than
 * a 64-bit count of nanoseconds (2262) is INT64_MAX. */
bool shim_when_parse(const char *text, enum shim_when_side side, int64_t now_ns, int64_t *ret_ns);

/* Reads a duration: numbers with units ms, s, m, h, d, w (7 days), y (365 days), largest first and
 * each at most once: "90d", "1h30m". "0" needs no unit. False for anything else or over 290 years.
 */
bool shim_duration_parse(const char *text, int64_t *ret_ns);

#define SHIM_WHEN_TEXT 32
/* "now", "12s ago", "5m ago", "3h ago", "2d ago", "in 4m"; from 100 days on the date. */
void shim_when_relative(int64_t ns, int64_t now_ns, char ret[SHIM_WHEN_TEXT]);
/* "2026-01-31 23:59:59" */
void shim_when_absolute(int64_t ns, char ret[SHIM_WHEN_TEXT]);
/* "850 ns", "12.3 us", "4.56 ms", "1.20 s", "3m 20s", "2h 5m", "3d 4h" */
void shim_duration_format(int64_t ns, char ret[SHIM_WHEN_TEXT]);

#endif
