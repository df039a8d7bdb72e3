/* SPDX-License-Identifier: MIT */
#include "hardening/scmp.h"

#include <errno.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define X32_BIT        0x40000000U /* __X32_SYSCALL_BIT, asm/unistd.h */
#define CONDITIONS_MAX 6

/* The tokens of the runtime-spec that Debian's kernels can present. A filter that does not list one
 * kills it; listing it means it must be proved too. */
const struct hard_arch HARD_ARCHS[] = {
	{ "SCMP_ARCH_X86_64", "x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, 0, 0 },
	{ "SCMP_ARCH_X32", "x32", SCMP_ARCH_X32, AUDIT_ARCH_X86_64, X32_BIT, 0 },
	{ "SCMP_ARCH_X86", "i386", SCMP_ARCH_X86, AUDIT_ARCH_I386, 0, 0 },
	{ "SCMP_ARCH_AARCH64", "aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, 0, 0 },
	{ "SCMP_ARCH_ARM", "arm", SCMP_ARCH_ARM, AUDIT_ARCH_ARM, 0, 0 },
	{ "SCMP_ARCH_S390X", "s390x", SCMP_ARCH_S390X, AUDIT_ARCH_S390X, 0, 1 },
	{ "SCMP_ARCH_S390", "s390", SCMP_ARCH_S390, AUDIT_ARCH_S390, 0, 1 },
	{ "SCMP_ARCH_PPC64LE", "ppc64le", SCMP_ARCH_PPC64LE, AUDIT_ARCH_PPC64LE, 0, 0 },
	{ "SCMP_ARCH_PPC64", "ppc64", SCMP_ARCH_PPC64, AUDIT_ARCH_PPC64, 0, 0 },
	{ "SCMP_ARCH_PPC", "ppc", SCMP_ARCH_PPC, AUDIT_ARCH_PPC, 0, 0 },
	{ "SCMP_ARCH_RISCV64", "riscv64", SCMP_ARCH_RISCV64, AUDIT_ARCH_RISCV64, 0, 0 },
	{ "SCMP_ARCH_MIPS", "mips", SCMP_ARCH_MIPS, AUDIT_ARCH_MIPS, 0, 0 },
	{ "SCMP_ARCH_MIPSEL", "mipsel", SCMP_ARCH_MIPSEL, AUDIT_ARCH_MIPSEL, 0, 0 },
	{ "SCMP_ARCH_MIPS64", "mips64", SCMP_ARCH_MIPS64, AUDIT_ARCH_MIPS64, 0, 0 },
	{ "SCMP_ARCH_MIPSEL64", "mipsel64", SCMP_ARCH_MIPSEL64, AUDIT_ARCH_MIPSEL64, 0, 0 },
	{ "SCMP_ARCH_MIPS64N32", "mips64n32", SCMP_ARCH_MIPS64N32, AUDIT_ARCH_MIPS64N32, 0, 0 },
	{ "SCMP_ARCH_MIPSEL64N32", "mipsel64n32", SCMP_ARCH_MIPSEL64N32, AUDIT_ARCH_MIPSEL64N32, 0,
	  0 },
};
const size_t HARD_ARCHS_COUNT = AQE_COUNT(HARD_ARCHS);

const struct hard_arch *hard_arch_by_name(const char *name)
{
	for (size_t i = 0; i < HARD_ARCHS_COUNT; i++) {
		if (aqe_str_eq(HARD_ARCHS[i].name, name))
			return &HARD_ARCHS[i];
	}
	return NULL;
}

const struct hard_arch *hard_arch_native(void)
{
	uint32_t token = seccomp_arch_native();

	for (size_t i = 0; i < HARD_ARCHS_COUNT; i++) {
		if (HARD_ARCHS[i].token == token)
			return &HARD_ARCHS[i];
	}
	return NULL;
}

int64_t hard_scmp_number(const struct hard_arch *arch, const char *name)
{
	/* Negative results are __NR_SCMP_ERROR or libseccomp's pseudo numbers of calls that this
	 * architecture does not have. */
	int nr = seccomp_syscall_resolve_name_arch(arch->token, name);

	return nr < 0 ? -1 : (int64_t)((uint32_t)nr | arch->nr_bit);
}

const char *hard_scmp_name(struct aqe_arena *a, const struct hard_arch *arch, uint32_t nr)
{
	AQE_AUTO_FREE char *name = NULL;

	if (nr > INT32_MAX)
		return NULL;
	name = seccomp_syscall_resolve_num_arch(arch->token, (int)nr);
	return name ? aqe_arena_dup(a, name) : NULL;
}

/* ---- compiling ---- */

struct action_row {
	const char *name;
	uint32_t action;
	bool takes_errno;
};

static const struct action_row action_rows[] = {
	{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW, false },
	{ "SCMP_ACT_LOG", SCMP_ACT_LOG, false },
	{ "SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(0), true },
	{ "SCMP_ACT_KILL", SCMP_ACT_KILL, false },
	{ "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD, false },
	{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS, false },
	{ "SCMP_ACT_TRAP", SCMP_ACT_TRAP, false },
	{ "SCMP_ACT_TRACE", SCMP_ACT_TRACE(0), true },
	{ "SCMP_ACT_NOTIFY", SCMP_ACT_NOTIFY, false },
};

static const struct {
	const char *name;
	enum scmp_compare op;
} op_rows[] = {
	{ "SCMP_CMP_NE", SCMP_CMP_NE },
	{ "SCMP_CMP_LT", SCMP_CMP_LT },
	{ "SCMP_CMP_LE", SCMP_CMP_LE },
	{ "SCMP_CMP_EQ", SCMP_CMP_EQ },
	{ "SCMP_CMP_GE", SCMP_CMP_GE },
	{ "SCMP_CMP_GT", SCMP_CMP_GT },
	{ "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
};

static int cannot(struct aqe_err *e, int rc, const char *what)
{
	return aqe_err_set(e, AQE_E_UNKNOWN, -rc, "libseccomp cannot %s", what);
}

static int read_action(const char *name, const struct aqe_json *errno_ret, uint32_t *ret,
		       struct aqe_err *e)
{
	uint64_t number = EPERM; /* the runtimes' default when the document names none */

	for (size_t i = 0; name && i < AQE_COUNT(action_rows); i++) {
		const struct action_row *row = &action_rows[i];

		if (!aqe_str_eq(row->name, name))
			continue;
		if (row->takes_errno && errno_ret && !aqe_json_to_u64(errno_ret, 0xffff, &number))
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "errno value is out of range");
		*ret = row->takes_errno ? row->action | (uint32_t)number : row->action;
		return 0;
	}
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "unknown seccomp action '%s'", name ? name : "");
}

static int read_condition(const struct aqe_json *arg, struct scmp_arg_cmp *ret, struct aqe_err *e)
{
	uint64_t index = 0, value = 0, two = 0;
	const char *op = NULL;

	if (aqe_json_get_u64(arg, "index", 5, &index, e) < 0 ||
	    aqe_json_get_u64(arg, "value", UINT64_MAX, &value, e) < 0 ||
	    aqe_json_get_u64(arg, "valueTwo", UINT64_MAX, &two, e) < 0 ||
	    aqe_json_get_str(arg, "op", &op, e) < 0)
		return aqe_err_wrap(e, "seccomp condition");
	for (size_t i = 0; i < AQE_COUNT(op_rows); i++) {
		if (!aqe_str_eq(op_rows[i].name, op))
			continue;
		*ret = (struct scmp_arg_cmp){ (unsigned)index, op_rows[i].op, value, two };
		return 0;
	}
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "unknown seccomp operator '%s'", op ? op : "");
}

struct rule {
	uint32_t action;
	struct scmp_arg_cmp args[CONDITIONS_MAX];
	unsigned n_args;
	bool alternatives; /* two conditions on one argument: each is a rule of its own */
};

static int read_rule(const struct aqe_json *entry, struct rule *r, struct aqe_err *e)
{
	const struct aqe_json *args = aqe_json_get(entry, "args");
	unsigned seen = 0;
	int rc = read_action(aqe_json_str(aqe_json_get(entry, "action")),
			     aqe_json_get(entry, "errnoRet"), &r->action, e);

	for (const struct aqe_json *a = args ? args->first : NULL; a && rc >= 0; a = a->next) {
		if (r->n_args == CONDITIONS_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d conditions in a rule",
					   CONDITIONS_MAX);
		rc = read_condition(a, &r->args[r->n_args], e);
		if (rc < 0)
			return rc;
		unsigned bit = 1U << r->args[r->n_args++].arg;

		r->alternatives = r->alternatives || (seen & bit);
		seen |= bit;
	}
	return rc;
}

static int add_name(scmp_filter_ctx ctx, const struct rule *r, const char *name, struct aqe_err *e)
{
	int nr = seccomp_syscall_resolve_name(name);
	int rc = 0;

	if (nr == __NR_SCMP_ERROR)
		return 0; /* both runtimes skip names they do not know */
	if (r->alternatives) {
		for (unsigned i = 0; i < r->n_args && rc == 0; i++)
			rc = seccomp_rule_add_array(ctx, r->action, nr, 1, &r->args[i]);
	} else {
		rc = seccomp_rule_add_array(ctx, r->action, nr, r->n_args, r->args);
	}
	/* An identical rule is there already, or this architecture has no such call. */
	if (rc < 0 && rc != -EEXIST && rc != -EDOM)
		return cannot(e, rc, "add a rule");
	return 0;
}

static int add_rules(scmp_filter_ctx ctx, const struct aqe_json *rules, uint32_t default_action,
		     struct aqe_err *e)
{
	for (const struct aqe_json *en = rules ? rules->first : NULL; en; en = en->next) {
		struct rule r = { 0 };
		const struct aqe_json *names = aqe_json_get(en, "names");
		int rc = read_rule(en, &r, e);

		if (rc < 0)
			return rc;
		if (r.action == default_action)
			continue;
		for (const struct aqe_json *n = names ? names->first : NULL; n; n = n->next) {
			rc = add_name(ctx, &r, aqe_json_str(n), e);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static int add_archs(scmp_filter_ctx ctx, const struct aqe_json *archs, struct aqe_err *e)
{
	for (const struct aqe_json *a = archs ? archs->first : NULL; a; a = a->next) {
		const struct hard_arch *arch = hard_arch_by_name(aqe_json_str(a));
		int rc;

		if (!arch)
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "unknown architecture '%s'",
					   aqe_json_str(a) ? aqe_json_str(a) : "");
		rc = seccomp_arch_add(ctx, arch->token);
		if (rc < 0 && rc != -EEXIST)
			return cannot(e, rc, "add an architecture");
	}
	return 0;
}

static int export(scmp_filter_ctx ctx, struct aqe_arena *a, const struct hard_bpf_insn **ret,
		  size_t *ret_n, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = memfd_create("aqe-bpf", MFD_CLOEXEC);
	struct stat st;
	int rc;

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "memfd_create");
	rc = seccomp_export_bpf(ctx, fd);
	if (rc < 0)
		return cannot(e, rc, "export the filter");
	if (fstat(fd, &st) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "fstat of the exported filter");
	size_t bytes = (size_t)st.st_size, n = bytes / sizeof(struct hard_bpf_insn);
	struct hard_bpf_insn *prog = aqe_arena_calloc(a, n + 1, sizeof(*prog));

	if (!prog)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a filter of %zu bytes", bytes);
	if (pread(fd, prog, bytes, 0) != (ssize_t)bytes)
		return aqe_err_set(e, AQE_E_SYS, errno, "read of the exported filter");
	*ret = prog;
	*ret_n = n;
	return 0;
}

int hard_scmp_compile(struct aqe_arena *a, const struct aqe_json *seccomp,
		      const struct hard_bpf_insn **ret, size_t *ret_n, struct aqe_err *e)
{
	uint32_t action = 0;
	int rc = read_action(aqe_json_str(aqe_json_get(seccomp, "defaultAction")),
			     aqe_json_get(seccomp, "defaultErrnoRet"), &action, e);

	if (rc < 0)
		return rc;
	scmp_filter_ctx ctx = seccomp_init(action);

	if (!ctx)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "libseccomp cannot make a filter");
	rc = add_archs(ctx, aqe_json_get(seccomp, "architectures"), e);
	if (rc >= 0)
		rc = add_rules(ctx, aqe_json_get(seccomp, "syscalls"), action, e);
	if (rc >= 0)
		rc = export(ctx, a, ret, ret_n, e);
	seccomp_release(ctx);
	return rc;
}
