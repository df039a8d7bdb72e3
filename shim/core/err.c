/* SPDX-License-Identifier: MIT */
#include "shim/core/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char CUT[] = "...";

/* Puts "..." at the end of a full text, without leaving half of a UTF-8 character before it. */
static void mark_cut(char text[AQE_ERR_TEXT_MAX])
{
	size_t n = AQE_ERR_TEXT_MAX - sizeof(CUT);

	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	memcpy(text + n, CUT, sizeof(CUT));
}

/* Foreign names end up in these texts, and the texts in logs and on terminals: no line breaks, no
 * escape sequences. */
static void disarm(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

/* Appends at `used`; returns the new length, which is AQE_ERR_TEXT_MAX or more when cut. */
static size_t add_text(char text[AQE_ERR_TEXT_MAX], size_t used, const char *more)
{
	size_t n = strlen(more);
	size_t room = AQE_ERR_TEXT_MAX - 1 - used;

	memcpy(text + used, more, n < room ? n : room);
	text[used + (n < room ? n : room)] = '\0';
	return used + n;
}

static AQE_PRINTF(3, 0) void fill(struct aqe_err *e, int sys, const char *fmt, va_list ap)
{
	const char *desc = NULL;
	size_t used;
	int n;

	n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	used = n < 0 ? 0 : (size_t)n;
	if (n < 0)
		e->text[0] = '\0';
	if (sys != 0 && used < sizeof(e->text)) {
		desc = strerrordesc_np(sys);
		used = add_text(e->text, used, ": ");
	}
	if (sys != 0 && used < sizeof(e->text))
		used = add_text(e->text, used, desc ? desc : "unknown error");
	if (used >= sizeof(e->text))
		mark_cut(e->text);
	disarm(e->text);
}

int aqe_err_set(struct aqe_err *e, enum aqe_code code, int sys, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	e->sys = sys;
	e->line = 0;
	e->col = 0;
	va_start(ap, fmt);
	fill(e, sys, fmt, ap);
	va_end(ap);
	return code;
}

int aqe_err_at(struct aqe_err *e, enum aqe_code code, uint32_t line, uint32_t col, const char *fmt,
	       ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	e->sys = 0;
	e->line = line;
	e->col = col;
	va_start(ap, fmt);
	fill(e, 0, fmt, ap);
	va_end(ap);
	return code;
}

int aqe_err_wrap(struct aqe_err *e, const char *fmt, ...)
{
	char old[AQE_ERR_TEXT_MAX];
	size_t used;
	va_list ap;
	int n;

	if (!e)
		return AQE_E_INTERNAL;
	memcpy(old, e->text, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	used = n < 0 ? 0 : (size_t)n;
	if (n < 0)
		e->text[0] = '\0';
	if (used < sizeof(e->text))
		used = add_text(e->text, used, ": ");
	if (used < sizeof(e->text))
		used = add_text(e->text, used, old);
	if (used >= sizeof(e->text))
		mark_cut(e->text);
	disarm(e->text);
	if (e->code == AQE_OK) /* somebody forgot to fill it: never a success */
		e->code = AQE_E_INTERNAL;
	return e->code;
}

const char *aqe_code_name(enum aqe_code code)
{
	static const char *const NAMES[] = {
		[-AQE_OK] = "ok",
		[-AQE_E_NOMEM] = "no_memory",
		[-AQE_E_SYS] = "system",
		[-AQE_E_MALFORMED] = "malformed",
		[-AQE_E_LIMIT] = "limit",
		[-AQE_E_ABSENT] = "absent",
		[-AQE_E_UNTRUSTED] = "untrusted",
		[-AQE_E_REFUSED] = "refused",
		[-AQE_E_USAGE] = "usage",
		[-AQE_E_UNKNOWN] = "unknown",
		[-AQE_E_TIMEOUT] = "timeout",
		[-AQE_E_INTERNAL] = "internal",
	};
	int idx = -(int)code;

	if (idx < 0 || (size_t)idx >= sizeof(NAMES) / sizeof(NAMES[0]))
		return "invalid";
	return NAMES[idx];
}
