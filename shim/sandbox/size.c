/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/size.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "shim/core/text.h"

#define WHOLE_MAX    19 /* digits before the point: all below 2^64 */
#define FRACTION_MAX 9

/* A decimal number as whole * scale + fraction of it. */
struct decimal {
	uint64_t whole, fraction, scale; /* scale: 10^digits of the fraction */
};

static size_t read_digits(const char *p, size_t max, uint64_t *ret)
{
	size_t n = 0;

	*ret = 0;
	while (n < max && isdigit((unsigned char)p[n])) {
		*ret = *ret * 10 + (uint64_t)(p[n] - '0');
		n++;
	}
	return n;
}

/* Moves *p behind the number. */
static bool read_decimal(const char **p, struct decimal *ret)
{
	size_t n = read_digits(*p, WHOLE_MAX, &ret->whole);

	if (n == 0)
		return false;
	*p += n;
	ret->fraction = 0;
	ret->scale = 1;
	if (**p != '.')
		return true;
	(*p)++;
	n = read_digits(*p, FRACTION_MAX, &ret->fraction);
	*p += n;
	for (size_t i = 0; i < n; i++)
		ret->scale *= 10;
	return n > 0;
}

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* A unit's shift; moves *p behind it. */
static unsigned read_unit(const char **p)
{
	static const char LETTERS[] = "kmgt";
	const char *at = **p ? strchr(LETTERS, tolower((unsigned char)**p)) : NULL;
	unsigned shift = 0;

	if (at) {
		shift = 10 * (unsigned)(at - LETTERS + 1);
		(*p)++;
	}
	if (tolower((unsigned char)**p) == 'b')
		(*p)++;
	return shift;
}

/* fraction * 2^shift / scale, bit by bit. */
static uint64_t scale_fraction(const struct decimal *d, unsigned shift)
{
	uint64_t rest = d->fraction, ret = 0;

	for (unsigned i = 0; i < shift; i++) {
		rest *= 2;
		ret = ret * 2 + rest / d->scale;
		rest %= d->scale;
	}
	return ret;
}

bool shim_size_parse(const char *text, uint64_t *ret_bytes)
{
	const char *p = skip_blanks(text);
	struct decimal d;
	unsigned shift;
	uint64_t part;

	if (!read_decimal(&p, &d))
		return false;
	p = skip_blanks(p);
	shift = read_unit(&p);
	if (*skip_blanks(p) != '\0')
		return false;
	part = scale_fraction(&d, shift);
	if (d.whole > (uint64_t)INT64_MAX >> shift)
		return false;
	*ret_bytes = (d.whole << shift) + part; /* at most 2^63 - 1: part is below 1 << shift */
	return true;
}

void shim_size_format(uint64_t bytes, char ret[SHIM_SIZE_TEXT])
{
	static const char *const UNITS[] = { "B", "KB", "MB", "GB", "TB" };
	size_t i = 0;
	uint64_t unit = 1, whole, tenths;

	while (i + 1 < AQE_COUNT(UNITS) && bytes / unit >= 1024) {
		unit *= 1024;
		i++;
	}
	whole = bytes / unit;
	tenths = (bytes % unit * 10 + unit / 2) / unit;
	(void)snprintf(ret, SHIM_SIZE_TEXT, "%llu.%llu %s",
		       (unsigned long long)(whole + tenths / 10), (unsigned long long)(tenths % 10),
		       UNITS[i]);
}

bool shim_cpus_parse(const char *text, uint32_t *ret_milli)
{
	const char *p = text;
	struct decimal d;
	uint64_t milli;

	if (!read_decimal(&p, &d) || *p != '\0' || d.whole > 1000)
		return false;
	milli = d.whole * 1000 + d.fraction * 1000 / d.scale;
	if (milli == 0 || milli > 1000000)
		return false;
	*ret_milli = (uint32_t)milli;
	return true;
}

void shim_cpus_format(uint32_t milli, char ret[SHIM_SIZE_TEXT])
{
	int n = snprintf(ret, SHIM_SIZE_TEXT, "%u.%03u", milli / 1000, milli % 1000);

	while (n > 0 && ret[n - 1] == '0')
		n--;
	if (n > 0 && ret[n - 1] == '.')
		n--;
	ret[n] = '\0';
}
