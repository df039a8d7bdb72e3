/* SPDX-License-Identifier: MIT */
#include "shim/core/clock.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY_S  ((int64_t)86400)
#define LAST_S 253402300799LL /* 9999-12-31T23:59:59Z */

static int64_t system_now_s(void *self)
{
	struct timespec ts = { 0, 0 };

	(void)self;
	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail with a valid clock and pointer */
	return ts.tv_sec;
}

static int64_t system_mono_ns(void *self)
{
	struct timespec ts = { 0, 0 };

	(void)self;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* as above */
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

const struct aqe_clock AQE_CLOCK_SYSTEM = { system_now_s, system_mono_ns, NULL };

/* Days from 1970-01-01 to a date of the Gregorian calendar. Years are taken to begin in March, so
 * that the leap day is the last of its year. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t m = (month + 9) % 12; /* March = 0 */
	int64_t day_of_year = (153 * m + 2) / 5 + day - 1;

	return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
	if (month == 12)
		return 31;
	return days_from_date(year, month + 1, 1) - days_from_date(year, month, 1);
}

void aqe_time_format(int64_t s, char ret[AQE_TIME_TEXT])
{
	int64_t days, year, month = 1, rest;
	char text[80]; /* more than the compiler can think the numbers need */

	s = s < 0 ? 0 : s > LAST_S ? LAST_S : s;
	days = s / DAY_S;
	rest = s % DAY_S;
	year = 1970 + days / 366; /* never too late; at most 20 years too early */
	while (days_from_date(year + 1, 1, 1) <= days)
		year++;
	days -= days_from_date(year, 1, 1);
	for (; days >= days_in_month(year, month); month++)
		days -= days_in_month(year, month);
	(void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)year, (int)month,
		       (int)days + 1, (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
	memcpy(ret, text, AQE_TIME_TEXT);
	ret[AQE_TIME_TEXT - 1] = '\0';
}

/* Matches `text` against `form`, in which a letter stands for a digit of that field. */
static bool read_fields(const char *text, const char *form, int64_t field[128])
{
	for (; *form; form++, text++) {
		if (*form >= 'a' && *form <= 'z') {
			if (*text < '0' || *text > '9')
				return false;
			field[(unsigned char)*form] =
				field[(unsigned char)*form] * 10 + (*text - '0');
		} else if (*text != *form) {
			return false;
		}
	}
	return *text == '\0';
}

bool aqe_time_parse(const char *text, int64_t *ret_s)
{
	int64_t f[128] = { 0 };
	const char *form;

	if (!text)
		return false;
	form = strlen(text) == 10 ? "yyyy-mm-dd" : "yyyy-mm-ddThh:ii:ssZ";
	if (!read_fields(text, form, f))
		return false;
	if (f['y'] < 1970 || f['m'] < 1 || f['m'] > 12 || f['d'] < 1 ||
	    f['d'] > days_in_month(f['y'], f['m']))
		return false;
	if (f['h'] > 23 || f['i'] > 59 || f['s'] > 59)
		return false;
	*ret_s = days_from_date(f['y'], f['m'], f['d']) * DAY_S + f['h'] * 3600 + f['i'] * 60 +
		 f['s'];
	return true;
}
