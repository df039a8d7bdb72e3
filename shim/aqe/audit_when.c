/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_when.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "shim/core/clock.h"
#include "shim/core/text.h"

#define S_PER_MIN    INT64_C(60)
#define S_PER_HOUR   INT64_C(3600)
#define S_PER_DAY    INT64_C(86400)
#define NS_PER_MS    INT64_C(1000000)
#define NS_PER_US    INT64_C(1000)
#define YEARS_MAX    290 /* what fits into 63 bits of nanoseconds, rounded down */
#define DAYS_A_YEAR  INT64_C(365)
#define DATE_FROM_S  (INT64_C(100) * S_PER_DAY)
#define ZONE_MAX_MIN (14 * S_PER_MIN)                        /* the widest zone there is */
#define S_MAX        (INT64_MAX / SHIM_NS_PER_S - S_PER_DAY) /* later times are the end of time */

struct unit {
	const char *name;
	int64_t ns;
};
/* Largest first; "ms" before "m" and "s", which it begins with. */
static const struct unit UNITS[] = {
	{ "y", DAYS_A_YEAR *S_PER_DAY *SHIM_NS_PER_S },
	{ "w", INT64_C(7) * S_PER_DAY *SHIM_NS_PER_S },
	{ "d", S_PER_DAY *SHIM_NS_PER_S },
	{ "h", S_PER_HOUR *SHIM_NS_PER_S },
	{ "ms", NS_PER_MS },
	{ "m", S_PER_MIN *SHIM_NS_PER_S },
	{ "s", SHIM_NS_PER_S },
};
#define DURATION_MAX (INT64_C(365) * S_PER_DAY * YEARS_MAX * SHIM_NS_PER_S)

/* ---- reading ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *p, moving it on; false when there is none or the number is over `max`. */
static bool take_number(const char **p, int64_t max, int64_t *ret)
{
	int64_t v = 0;

	if (!is_digit(**p))
		return false;
	for (; is_digit(**p); (*p)++) {
		v = v * 10 + (**p - '0');
		if (v > max)
			return false;
	}
	*ret = v;
	return true;
}

/* The unit at *p, moving it on; NULL when there is none. */
static const struct unit *take_unit(const char **p)
{
	for (size_t i = 0; i < AQE_COUNT(UNITS); i++) {
		const size_t n = strlen(UNITS[i].name);

		if (strncmp(*p, UNITS[i].name, n) == 0) {
			*p += n;
			return &UNITS[i];
		}
	}
	return NULL;
}

bool shim_duration_parse(const char *text, int64_t *ret_ns)
{
	int64_t sum = 0, last = INT64_MAX;
	const char *p = text;

	if (strcmp(text, "0") == 0) {
		*ret_ns = 0;
		return true;
	}
	do {
		const struct unit *u;
		int64_t n;

		if (!take_number(&p, DURATION_MAX / NS_PER_MS, &n))
			return false;
		u = take_unit(&p);
		if (!u || u->ns >= last || n > DURATION_MAX / u->ns ||
		    sum > DURATION_MAX - n * u->ns)
			return false;
		sum += n * u->ns;
		last = u->ns;
	} while (*p);
	*ret_ns = sum;
	return true;
}

/* "Z", "+02:00" or nothing, which is Z. */
static bool take_zone(const char **p, int64_t *ret_min)
{
	const int sign = **p == '-' ? -1 : 1;
	int64_t h, m;

	*ret_min = 0;
	if (**p == '\0')
		return true;
	if (**p == 'Z' || **p == 'z') {
		(*p)++;
		return true;
	}
	if (**p != '+' && **p != '-')
		return false;
	(*p)++;
	if (!is_digit((*p)[0]) || !is_digit((*p)[1]) || (*p)[2] != ':' || !is_digit((*p)[3]) ||
	    !is_digit((*p)[4]) || is_digit((*p)[5]))
		return false;
	h = ((*p)[0] - '0') * 10 + (*p)[1] - '0';
	m = ((*p)[3] - '0') * 10 + (*p)[4] - '0';
	*p += 5;
	*ret_min = sign * (h * S_PER_MIN + m);
	return m < S_PER_MIN && h * S_PER_MIN + m <= ZONE_MAX_MIN;
}

/* ".5": up to nine digits. *ret_ns is untouched without one. */
static bool take_fraction(const char **p, int64_t *ret_ns)
{
	int64_t v = 0, scale = SHIM_NS_PER_S;

	if (**p != '.')
		return true;
	for ((*p)++; is_digit(**p); (*p)++) {
		scale /= 10;
		if (!scale)
			return false;
		v += (**p - '0') * scale;
	}
	*ret_ns = v;
	return scale != SHIM_NS_PER_S;
}

/* "2026-01-31" at the start; what follows is *ret_rest. */
static bool take_day(const char *text, int64_t *ret_s, const char **ret_rest)
{
	char day[sizeof("2026-01-31")];

	if (strnlen(text, sizeof(day)) < sizeof(day) - 1)
		return false;
	memcpy(day, text, sizeof(day) - 1);
	day[sizeof(day) - 1] = '\0';
	if (!aqe_time_parse(day, ret_s))
		return false;
	*ret_rest = text + sizeof(day) - 1;
	return true;
}

/* "12:30", "12:30:00" at *p. */
static bool take_clock(const char **p, int64_t *ret_s, int64_t *ret_span_s)
{
	static const int64_t max[] = { 23, 59, 59 };
	int64_t v[3] = { 0, 0, 0 };

	*ret_span_s = S_PER_MIN;
	for (size_t i = 0; i < AQE_COUNT(v); i++) {
		if (!is_digit((*p)[0]) || !is_digit((*p)[1]))
			return false;
		v[i] = ((*p)[0] - '0') * 10 + (*p)[1] - '0';
		if (v[i] > max[i])
			return false;
		*p += 2;
		if (i == 2)
			*ret_span_s = 1;
		if (i && **p != ':')
			break;
		if (i < 2 && *(*p)++ != ':')
			return false;
	}
	*ret_s = v[0] * S_PER_HOUR + v[1] * S_PER_MIN + v[2];
	return true;
}

static bool parse_date(const char *text, enum shim_when_side side, int64_t *ret_ns)
{
	int64_t day, clock = 0, span = S_PER_DAY, zone = 0, fraction = -1, ns;
	const char *p;

	if (!take_day(text, &day, &p))
		return false;
	if (*p) {
		if (*p != 'T' && *p != 't' && *p != ' ')
			return false;
		p++;
		if (!take_clock(&p, &clock, &span))
			return false;
		if (span == 1 && !take_fraction(&p, &fraction))
			return false;
		if (!take_zone(&p, &zone) || *p)
			return false;
	}
	if (day > S_MAX - S_PER_DAY) {
		*ret_ns = INT64_MAX;
		return true;
	}
	ns = (day + clock - zone * S_PER_MIN) * SHIM_NS_PER_S;
	if (fraction >= 0)
		ns += fraction;
	else if (side == SHIM_WHEN_UNTIL)
		ns += span * SHIM_NS_PER_S - 1;
	if (ns < 0)
		return false;
	*ret_ns = ns;
	return true;
}

static bool parse_ago(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	static const char ago[] = " ago";
	char word[64];
	size_t n = strlen(text);
	int64_t d;

	if (n >= sizeof(word))
		return false;
	if (n > sizeof(ago) - 1 && aqe_ends(text, ago))
		n -= sizeof(ago) - 1;
	memcpy(word, text, n);
	word[n] = '\0';
	if (!shim_duration_parse(word, &d))
		return false;
	*ret_ns = d < now_ns ? now_ns - d : 0;
	return true;
}

static int64_t day_of(int64_t ns)
{
	return ns - ns % (S_PER_DAY * SHIM_NS_PER_S);
}

bool shim_when_parse(const char *text, enum shim_when_side side, int64_t now_ns, int64_t *ret_ns)
{
	const int64_t day = S_PER_DAY * SHIM_NS_PER_S;
	const int64_t whole_day = side == SHIM_WHEN_UNTIL ? day - 1 : 0;
	const char *p = text + 1;
	int64_t s;

	if (strcmp(text, "now") == 0)
		*ret_ns = now_ns;
	else if (strcmp(text, "all") == 0)
		*ret_ns = side == SHIM_WHEN_UNTIL ? INT64_MAX : 0;
	else if (strcmp(text, "today") == 0)
		*ret_ns = day_of(now_ns) + whole_day;
	else if (strcmp(text, "yesterday") == 0 && now_ns >= day)
		*ret_ns = day_of(now_ns) - day + whole_day;
	else if (text[0] == '@' && take_number(&p, INT64_MAX / SHIM_NS_PER_S - 1, &s) && !*p)
		*ret_ns = s * SHIM_NS_PER_S + (side == SHIM_WHEN_UNTIL ? SHIM_NS_PER_S - 1 : 0);
	else
		return parse_date(text, side, ret_ns) || parse_ago(text, now_ns, ret_ns);
	return true;
}

/* ---- writing ---- */

void shim_when_absolute(int64_t ns, char ret[SHIM_WHEN_TEXT])
{
	char text[AQE_TIME_TEXT];

	aqe_time_format(ns / SHIM_NS_PER_S, text);
	(void)snprintf(ret, SHIM_WHEN_TEXT, "%.10s %.8s", text, text + 11);
}

void shim_when_relative(int64_t ns, int64_t now_ns, char ret[SHIM_WHEN_TEXT])
{
	const bool past = ns <= now_ns;
	const int64_t s = (past ? now_ns - ns : ns - now_ns) / SHIM_NS_PER_S;
	int64_t n = s;
	char unit = 's';

	if (s >= DATE_FROM_S) {
		shim_when_absolute(ns, ret);
		ret[10] = '\0'; /* the date alone */
		return;
	}
	if (s == 0) {
		(void)snprintf(ret, SHIM_WHEN_TEXT, "now");
		return;
	}
	if (s >= S_PER_DAY) {
		n = s / S_PER_DAY;
		unit = 'd';
	} else if (s >= S_PER_HOUR) {
		n = s / S_PER_HOUR;
		unit = 'h';
	} else if (s >= S_PER_MIN) {
		n = s / S_PER_MIN;
		unit = 'm';
	}
	(void)snprintf(ret, SHIM_WHEN_TEXT, past ? "%" PRId64 "%c ago" : "in %" PRId64 "%c", n,
		       unit);
}

/* Three digits: 1.23, 12.3, 123. */
static void scaled(double v, const char *unit, char ret[SHIM_WHEN_TEXT])
{
	const int digits = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;

	(void)snprintf(ret, SHIM_WHEN_TEXT, "%.*f %s", digits, v, unit);
}

void shim_duration_format(int64_t ns, char ret[SHIM_WHEN_TEXT])
{
	const int64_t s = ns / SHIM_NS_PER_S;

	if (ns < NS_PER_US)
		(void)snprintf(ret, SHIM_WHEN_TEXT, "%" PRId64 " ns", ns);
	else if (ns < NS_PER_MS)
		scaled((double)ns / (double)NS_PER_US, "us", ret);
	else if (ns < SHIM_NS_PER_S)
		scaled((double)ns / (double)NS_PER_MS, "ms", ret);
	else if (s < S_PER_MIN)
		scaled((double)ns / (double)SHIM_NS_PER_S, "s", ret);
	else if (s < S_PER_HOUR)
		(void)snprintf(ret, SHIM_WHEN_TEXT, "%" PRId64 "m %" PRId64 "s", s / S_PER_MIN,
			       s % S_PER_MIN);
	else if (s < S_PER_DAY)
		(void)snprintf(ret, SHIM_WHEN_TEXT, "%" PRId64 "h %" PRId64 "m", s / S_PER_HOUR,
			       s % S_PER_HOUR / S_PER_MIN);
	else
		(void)snprintf(ret, SHIM_WHEN_TEXT, "%" PRId64 "d %" PRId64 "h", s / S_PER_DAY,
			       s % S_PER_DAY / S_PER_HOUR);
}
