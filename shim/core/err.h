/* SPDX-License-Identifier: MIT */
/* The error record. One is owned by the caller of every function that can fail; it is filled once,
 * where the fault is seen, and wrapped on the way up. Nothing is allocated. */
#ifndef AQE_CORE_ERR_H
#define AQE_CORE_ERR_H

#include <stdint.h>

#define AQE_MUST_CHECK   __attribute__((warn_unused_result))
#define AQE_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Longest text of an error record, in bytes, with the NUL; longer text is cut and ends in "...". */
#define AQE_ERR_TEXT_MAX 512

/* The closed list of codes. An error means "could not decide": the caller refuses. */
enum aqe_code {
	AQE_OK = 0,
	AQE_E_NOMEM = -1,     /* allocation failed */
	AQE_E_SYS = -2,       /* a system call failed; errno is in .sys */
	AQE_E_MALFORMED = -3, /* input is not well-formed, or a known field has a wrong type */
	AQE_E_LIMIT = -4,     /* input is over a limit (size, depth, count, length) */
	AQE_E_ABSENT = -5,    /* a thing that must exist does not (file, member, entry) */
	AQE_E_UNTRUSTED = -6, /* owner, mode, link count or file type is not acceptable */
	AQE_E_REFUSED = -7,   /* policy or profile says no: a verdict, not a fault */
	AQE_E_USAGE = -8,     /* the command line is wrong */
	AQE_E_UNKNOWN = -9,   /* the facts needed to decide cannot be had */
	AQE_E_TIMEOUT = -10,  /* a deadline passed */
	AQE_E_INTERNAL = -11, /* a broken promise of our own code */
};

/* Place an error record on the stack as `struct aqe_err e = AQE_ERR_INIT;`. */
struct aqe_err {
	enum aqe_code code;
	int sys;            /* errno of the failed call, or 0 */
	uint32_t line, col; /* place in a document, 1-based; 0 when there is none */
	char text[AQE_ERR_TEXT_MAX];
};
#define AQE_ERR_INIT                \
	{                           \
		AQE_OK, 0, 0, 0, "" \
	}

/* Fills `e` (may be NULL) and returns `code`. `sys` is an errno value or 0; when it is not 0 its
 * description is appended as ": TEXT". Text: lower case, no full stop, subject in single quotes. */
int aqe_err_set(struct aqe_err *e, enum aqe_code code, int sys, const char *fmt, ...)
	AQE_PRINTF(4, 5);

/* As aqe_err_set(), with the place in a document. */
int aqe_err_at(struct aqe_err *e, enum aqe_code code, uint32_t line, uint32_t col, const char *fmt,
	       ...) AQE_PRINTF(5, 6);

/* Puts "what we were doing: " before the text; returns the record's code, which is a failure
 * afterwards (AQE_E_INTERNAL where nobody had set one). `e` may be NULL (then returns
 * AQE_E_INTERNAL). */
int aqe_err_wrap(struct aqe_err *e, const char *fmt, ...) AQE_PRINTF(2, 3);

/* Stable lower-case name of a code, such as "malformed"; never NULL. */
const char *aqe_code_name(enum aqe_code code);

#endif
