/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <string.h>

#include "hardening/policy_file.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define SHOWN_MAX   64 /* bytes of a wrong value shown in a message */
#define CPUS_DIGITS 9  /* more than HARD_POLICY_CPUS_MILLI_MAX needs, fits 32 bits */

int hard_policy_fault_value(const struct hard_policy_file *f, const struct aqe_json *v,
			    const char *wanted, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)4 * SHOWN_MAX);

	aqe_buf_quote(&shown, v->text ? v->text : aqe_json_type_name(v->type), SHOWN_MAX);
	return hard_policy_fault(f, v, e, "is '%s', %s", aqe_buf_str(&shown), wanted);
}

int hard_policy_read_version(const struct hard_policy_file *f, const struct aqe_json *v,
			     struct aqe_err *e)
{
	if (strcmp(v->text, "1") != 0)
		return hard_policy_fault_value(f, v, "wanted 1", e);
	return AQE_OK;
}

int hard_policy_read_mode(const struct hard_policy_file *f, const struct aqe_json *v,
			  enum hard_mode *ret, struct aqe_err *e)
{
	static const char *const names[] = {
		[HARD_MODE_OBSERVE] = "observe",
		[HARD_MODE_VERIFY] = "verify",
		[HARD_MODE_ENFORCE] = "enforce",
	};

	for (unsigned i = 0; i < AQE_COUNT(names); i++) {
		if (strcmp(names[i], v->text) == 0) {
			*ret = (enum hard_mode)i;
			return AQE_OK;
		}
	}
	return hard_policy_fault_value(f, v, "wanted enforce, verify or observe", e);
}

int hard_policy_read_unmarked(const struct hard_policy_file *f, const struct aqe_json *v,
			      bool *ret_refuse, struct aqe_err *e)
{
	if (strcmp(v->text, "refuse") != 0 && strcmp(v->text, "default") != 0)
		return hard_policy_fault_value(f, v, "wanted default or refuse", e);
	*ret_refuse = strcmp(v->text, "refuse") == 0;
	return AQE_OK;
}

int hard_policy_read_path(const struct hard_policy_file *f, const struct aqe_json *v,
			  const char **ret, struct aqe_err *e)
{
	if (!aqe_path_is_canonical(v->text) || strlen(v->text) >= PATH_MAX ||
	    strcmp(v->text, "/") == 0)
		return hard_policy_fault_value(f, v,
					       "wanted an absolute path without '.', '..', '//' or "
					       "a slash at its end",
					       e);
	*ret = v->text;
	return AQE_OK;
}

/* ---- audit ---- */

static int read_audit_mode(const struct hard_policy_file *f, const struct aqe_json *v,
			   enum hard_audit_mode *ret, struct aqe_err *e)
{
	static const char *const names[] = {
		[HARD_AUDIT_OFF] = "off",
		[HARD_AUDIT_OPTIONAL] = "optional",
		[HARD_AUDIT_REQUIRED] = "required",
	};

	for (unsigned i = 0; i < AQE_COUNT(names); i++) {
		if (strcmp(names[i], v->text) == 0) {
			*ret = (enum hard_audit_mode)i;
			return AQE_OK;
		}
	}
	return hard_policy_fault_value(f, v, "wanted required, optional or off", e);
}

int hard_policy_read_audit(const struct hard_policy_file *f, const struct aqe_json *obj,
			   struct hard_audit *io, struct aqe_err *e)
{
	const struct aqe_json *mode = aqe_json_get(obj, "mode"), *path = aqe_json_get(obj, "path"),
			      *every = aqe_json_get(obj, "signEvery");
	uint64_t n = 0;

	if (every && (!aqe_json_to_u64(every, HARD_POLICY_SIGN_EVERY_MAX, &n) || n == 0))
		return hard_policy_fault_value(f, every, "wanted 1 to 1000000", e);
	if (mode && read_audit_mode(f, mode, &io->mode, e))
		return AQE_E_MALFORMED;
	if (every)
		io->sign_every = (uint32_t)n;
	return path ? hard_policy_read_path(f, path, &io->path, e) : AQE_OK;
}

/* ---- agents ---- */

/* "1.5" to 1500: at most three decimals, no sign, no exponent. */
static bool parse_milli(const char *s, uint64_t *ret)
{
	uint64_t whole = 0, milli = 0;
	size_t n = strspn(s, "0123456789");
	unsigned scale = 1000;

	if (n == 0 || n > CPUS_DIGITS)
		return false;
	for (size_t i = 0; i < n; i++)
		whole = whole * 10 + (uint64_t)(s[i] - '0');
	s += n;
	if (*s == '.') {
		n = strspn(++s, "0123456789");
		if (n == 0 || n > 3)
			return false;
		for (size_t i = 0; i < n; i++)
			milli += (uint64_t)(s[i] - '0') * (scale /= 10);
		s += n;
	}
	*ret = whole * 1000 + milli;
	return *s == '\0';
}

static int read_cpus(const struct hard_policy_file *f, const struct aqe_json *v,
		     struct hard_agent *io, struct aqe_err *e)
{
	uint64_t milli = 0;

	if (!parse_milli(v->text, &milli) || milli < HARD_POLICY_CPUS_MILLI_MIN ||
	    milli > HARD_POLICY_CPUS_MILLI_MAX)
		return hard_policy_fault_value(f, v, "wanted 0.01 to 256 CPUs, such as 1.5", e);
	io->cpus_milli = (uint32_t)milli;
	return AQE_OK;
}

static bool read_size(const struct aqe_json *v, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;
	bool ok = v->type == AQE_JSON_NUMBER ? aqe_json_to_u64(v, max, &n)
					     : aqe_parse_size(v->text, &n);

	if (!ok || n < min || n > max)
		return false;
	*ret = n;
	return true;
}

static int read_memory(const struct hard_policy_file *f, const struct aqe_json *v,
		       struct hard_agent *io, struct aqe_err *e)
{
	if (!read_size(v, HARD_POLICY_MEMORY_MIN, HARD_POLICY_MEMORY_MAX, &io->memory_bytes))
		return hard_policy_fault_value(f, v, "wanted 6m to 1024g, or bytes", e);
	return AQE_OK;
}

static int read_disk(const struct hard_policy_file *f, const struct aqe_json *v,
		     struct hard_agent *io, struct aqe_err *e)
{
	if (!read_size(v, HARD_POLICY_DISK_MIN, HARD_POLICY_DISK_MAX, &io->disk_bytes))
		return hard_policy_fault_value(f, v, "wanted 1m to 1024g, or bytes", e);
	return AQE_OK;
}

static int read_pids(const struct hard_policy_file *f, const struct aqe_json *v,
		     struct hard_agent *io, struct aqe_err *e)
{
	uint64_t n = 0;

	if (!aqe_json_to_u64(v, HARD_POLICY_PIDS_MAX, &n) || n == 0)
		return hard_policy_fault_value(f, v, "wanted 1 to 32768", e);
	io->pids = (uint32_t)n;
	return AQE_OK;
}

static int read_tmp_exec(const struct hard_policy_file *f, const struct aqe_json *v,
			 struct hard_agent *io, struct aqe_err *e)
{
	(void)f;
	(void)e;
	io->tmp_exec = v->boolean;
	return AQE_OK;
}

int hard_policy_read_limits(const struct hard_policy_file *f, const struct aqe_json *obj,
			    struct hard_agent *io, struct aqe_err *e)
{
	static const struct {
		const char *key;
		int (*read)(const struct hard_policy_file *f, const struct aqe_json *v,
			    struct hard_agent *io, struct aqe_err *e);
	} readers[] = {
		{ "cpus", read_cpus }, { "memory", read_memory },    { "disk", read_disk },
		{ "pids", read_pids }, { "tmpExec", read_tmp_exec },
	};
	int rc = AQE_OK;

	for (size_t i = 0; !rc && i < AQE_COUNT(readers); i++) {
		const struct aqe_json *v = aqe_json_get(obj, readers[i].key);

		if (v)
			rc = readers[i].read(f, v, io, e);
	}
	return rc;
}
