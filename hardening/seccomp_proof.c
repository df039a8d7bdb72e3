/* SPDX-License-Identifier: MIT */
#include "hardening/seccomp_proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/scmp.h"
#include "hardening/seccomp.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ALL       0xffffffffU
#define FLAG(bit) (bit), (bit)

/* Families of linux/socket.h other than UNIX (1), INET (2), INET6 (10) and NETLINK (16). */
#define FAMILY(call, name, number)                   \
	{                                            \
		call, name, 0, number, ALL, -1, 0, 0 \
	}
#define FAMILIES(call)                                                                       \
	FAMILY(call, "AF_UNSPEC", 0), FAMILY(call, "AF_AX25", 3), FAMILY(call, "AF_IPX", 4), \
		FAMILY(call, "AF_APPLETALK", 5), FAMILY(call, "AF_NETROM", 6),               \
		FAMILY(call, "AF_BRIDGE", 7), FAMILY(call, "AF_ATMPVC", 8),                  \
		FAMILY(call, "AF_X25", 9), FAMILY(call, "AF_ROSE", 11),                      \
		FAMILY(call, "AF_DECnet", 12), FAMILY(call, "AF_NETBEUI", 13),               \
		FAMILY(call, "AF_SECURITY", 14), FAMILY(call, "AF_KEY", 15),                 \
		FAMILY(call, "AF_PACKET", 17), FAMILY(call, "AF_ASH", 18),                   \
		FAMILY(call, "AF_ECONET", 19), FAMILY(call, "AF_ATMSVC", 20),                \
		FAMILY(call, "AF_RDS", 21), FAMILY(call, "AF_SNA", 22),                      \
		FAMILY(call, "AF_IRDA", 23), FAMILY(call, "AF_PPPOX", 24),                   \
		FAMILY(call, "AF_WANPIPE", 25), FAMILY(call, "AF_LLC", 26),                  \
		FAMILY(call, "AF_IB", 27), FAMILY(call, "AF_MPLS", 28),                      \
		FAMILY(call, "AF_CAN", 29), FAMILY(call, "AF_TIPC", 30),                     \
		FAMILY(call, "AF_BLUETOOTH", 31), FAMILY(call, "AF_IUCV", 32),               \
		FAMILY(call, "AF_RXRPC", 33), FAMILY(call, "AF_ISDN", 34),                   \
		FAMILY(call, "AF_PHONET", 35), FAMILY(call, "AF_IEEE802154", 36),            \
		FAMILY(call, "AF_CAIF", 37), FAMILY(call, "AF_ALG", 38),                     \
		FAMILY(call, "AF_NFC", 39), FAMILY(call, "AF_VSOCK", 40),                    \
		FAMILY(call, "AF_KCM", 41), FAMILY(call, "AF_QIPCRTR", 42),                  \
		FAMILY(call, "AF_SMC", 43), FAMILY(call, "AF_XDP", 44),                      \
		FAMILY(call, "AF_MCTP", 45)
/* Protocols of linux/netlink.h other than NETLINK_ROUTE (0). */
#define NETLINK(name, number)                              \
	{                                                  \
		"socket", name, 0, 16, ALL, 2, number, ALL \
	}

/* Only the bits that the kernel looks at are fixed; the upper halves of the 64-bit arguments stay
 * unknown, because the kernel ignores them and a 64-bit compare does not. */
const struct hard_arg_rule HARD_ARG_RULES[] = {
	{ "clone", "CLONE_NEWNS", 0, FLAG(0x00020000U), -1, 0, 0 },
	{ "clone", "CLONE_NEWCGROUP", 0, FLAG(0x02000000U), -1, 0, 0 },
	{ "clone", "CLONE_NEWUTS", 0, FLAG(0x04000000U), -1, 0, 0 },
	{ "clone", "CLONE_NEWIPC", 0, FLAG(0x08000000U), -1, 0, 0 },
	{ "clone", "CLONE_NEWUSER", 0, FLAG(0x10000000U), -1, 0, 0 },
	{ "clone", "CLONE_NEWPID", 0, FLAG(0x20000000U), -1, 0, 0 },
	{ "clone", "CLONE_NEWNET", 0, FLAG(0x40000000U), -1, 0, 0 },
	FAMILIES("socket"),
	NETLINK("NETLINK_USERSOCK", 2),
	NETLINK("NETLINK_FIREWALL", 3),
	NETLINK("NETLINK_SOCK_DIAG", 4),
	NETLINK("NETLINK_NFLOG", 5),
	NETLINK("NETLINK_XFRM", 6),
	NETLINK("NETLINK_SELINUX", 7),
	NETLINK("NETLINK_ISCSI", 8),
	NETLINK("NETLINK_AUDIT", 9),
	NETLINK("NETLINK_FIB_LOOKUP", 10),
	NETLINK("NETLINK_CONNECTOR", 11),
	NETLINK("NETLINK_NETFILTER", 12),
	NETLINK("NETLINK_IP6_FW", 13),
	NETLINK("NETLINK_DNRTMSG", 14),
	NETLINK("NETLINK_KOBJECT_UEVENT", 15),
	NETLINK("NETLINK_GENERIC", 16),
	NETLINK("NETLINK_SCSITRANSPORT", 18),
	NETLINK("NETLINK_ECRYPTFS", 19),
	NETLINK("NETLINK_RDMA", 20),
	NETLINK("NETLINK_CRYPTO", 21),
	NETLINK("NETLINK_SMC", 22),
	FAMILIES("socketpair"),
	/* linux/personality.h; bit 30 is held at 0 because 0xffffffff only asks */
	{ "personality", "MMAP_PAGE_ZERO", 0, 0x00100000U, 0x40100000U, -1, 0, 0 },
	{ "personality", "ADDR_COMPAT_LAYOUT", 0, 0x00200000U, 0x40200000U, -1, 0, 0 },
	{ "personality", "READ_IMPLIES_EXEC", 0, 0x00400000U, 0x40400000U, -1, 0, 0 },
};
const size_t HARD_ARG_RULES_COUNT = AQE_COUNT(HARD_ARG_RULES);

struct prover {
	struct aqe_arena *a;
	const struct hard_bpf_insn *prog;
	size_t n_insns;
	struct hard_hole *holes;
	struct hard_proof *ret;
};

static int add_hole(struct prover *p, const struct hard_arch *arch, const char *call,
		    uint16_t actions, struct aqe_err *e)
{
	struct hard_proof *r = p->ret;

	if (!call)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the seccomp proof");
	if (r->n_holes < HARD_HOLES_MAX)
		p->holes[r->n_holes++] = (struct hard_hole){ call, arch->label, actions };
	r->n_all++;
	return 0;
}

/* ---- every number of one architecture, arguments unknown ---- */

static int cmp_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Numbers worth asking about: all that a kernel of the next years can have, natively and as x32,
 * the edges of the number's type, and whatever the filter itself compares with. Sorted, once each.
 */
static int numbers(struct prover *p, uint32_t *nrs, size_t *ret_n, struct aqe_err *e)
{
	static const uint32_t edges[] = { 0x3fffffffU, 0x40000000U + HARD_BPF_NRS_BASE,
					  0x7fffffffU, 0x80000000U,
					  0xfffffffeU, 0xffffffffU };
	size_t n = 0, w = 0;

	for (uint32_t i = 0; i < HARD_BPF_NRS_BASE; i++)
		nrs[n++] = i;
	for (uint32_t i = 0; i < HARD_BPF_NRS_BASE; i++)
		nrs[n++] = 0x40000000U + i;
	for (size_t i = 0; i < AQE_COUNT(edges); i++)
		nrs[n++] = edges[i];
	int rc = hard_bpf_constants(p->prog, p->n_insns, nrs, &n, e);

	if (rc < 0)
		return rc;
	qsort(nrs, n, sizeof(*nrs), cmp_u32);
	for (size_t i = 0; i < n; i++) {
		if (w == 0 || nrs[w - 1] != nrs[i])
			nrs[w++] = nrs[i];
	}
	*ret_n = w;
	return 0;
}

static uint16_t reached(const struct hard_bpf_query *q, const uint16_t *sets, int64_t nr)
{
	size_t lo = 0, hi = q->n_nrs;

	while (nr >= 0 && lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (q->nrs[mid] == (uint32_t)nr)
			return sets[mid];
		if (q->nrs[mid] < (uint32_t)nr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

/* Numbers that let something through must be known calls; libseccomp resolves an x32 number with
 * its bit. One architecture pair shares a token (x86_64 and x32): each judges its own half. */
static int unknown_numbers(struct prover *p, const struct hard_arch *arch,
			   const struct hard_bpf_query *q, const uint16_t *sets, struct aqe_err *e)
{
	for (size_t i = 0; i < q->n_nrs; i++) {
		uint32_t nr = q->nrs[i];

		if (!(sets[i] & HARD_BPF_OPEN) || (nr & 0x40000000U) != arch->nr_bit)
			continue;
		if (hard_scmp_name(p->a, arch, nr))
			continue;
		int rc = add_hole(p, arch, aqe_arena_fmt(p->a, "number %u", nr),
				  sets[i] & HARD_BPF_OPEN, e);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int forbidden_names(struct prover *p, const struct hard_arch *arch,
			   const struct hard_bpf_query *q, const uint16_t *sets, struct aqe_err *e)
{
	for (size_t i = 0; i < HARD_SECCOMP_FORBIDDEN_COUNT; i++) {
		const char *name = HARD_SECCOMP_FORBIDDEN[i];
		uint16_t open = reached(q, sets, hard_scmp_number(arch, name)) & HARD_BPF_OPEN;
		int rc = open ? add_hole(p, arch, name, open, e) : 0;

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- calls that are forbidden with some arguments ---- */

static void fix_bits(struct hard_bpf_word *w, uint32_t value, uint32_t mask)
{
	*w = (struct hard_bpf_word){ value & mask, ~mask };
}

static int argument_rules(struct prover *p, const struct hard_arch *arch, struct aqe_err *e)
{
	int64_t nr = -1;

	for (size_t i = 0; i < HARD_ARG_RULES_COUNT; i++) {
		const struct hard_arg_rule *r = &HARD_ARG_RULES[i];

		/* the rules of one call stand together */
		if (i == 0 || !aqe_str_eq(r->call, HARD_ARG_RULES[i - 1].call))
			nr = hard_scmp_number(arch, r->call);
		uint32_t one = (uint32_t)nr;
		struct hard_bpf_query q = { arch->audit, &one, 1, { { 0, 0 } } };
		unsigned arg = aqe_str_eq(r->call, "clone") ? arch->clone_flags_arg : r->arg;
		uint16_t set = 0;

		if (nr < 0)
			continue;
		for (size_t w = 0; w < AQE_COUNT(q.args); w++)
			q.args[w] = (struct hard_bpf_word)HARD_BPF_ANY;
		fix_bits(&q.args[2 * arg], r->value, r->mask);
		if (r->arg2 >= 0)
			fix_bits(&q.args[2 * r->arg2], r->value2, r->mask2);
		int rc = hard_bpf_reach(p->prog, p->n_insns, &q, &set, e);

		if (rc >= 0 && (set & HARD_BPF_OPEN))
			rc = add_hole(p, arch, aqe_arena_fmt(p->a, "%s(%s)", r->call, r->label),
				      set & HARD_BPF_OPEN, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* True when the filter lets nothing at all through on this architecture (it is not listed). */
static bool closed(const uint16_t *sets, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (sets[i] & HARD_BPF_OPEN)
			return false;
	}
	return true;
}

static int prove_arch(struct prover *p, const struct hard_arch *arch, struct hard_bpf_query *q,
		      uint16_t *sets, struct aqe_err *e)
{
	q->arch = arch->audit;
	int rc = hard_bpf_reach(p->prog, p->n_insns, q, sets, e);

	if (rc < 0 || closed(sets, q->n_nrs))
		return rc;
	if (arch == hard_arch_native()) {
		for (size_t i = 0; i < q->n_nrs; i++)
			p->ret->n_allowed +=
				(sets[i] & HARD_BPF_ALLOW) && !(q->nrs[i] & 0x40000000U);
	}
	rc = unknown_numbers(p, arch, q, sets, e);
	if (rc >= 0)
		rc = forbidden_names(p, arch, q, sets, e);
	return rc < 0 ? rc : argument_rules(p, arch, e);
}

int hard_proof_bpf(struct aqe_arena *a, const struct hard_bpf_insn *prog, size_t n_insns,
		   struct hard_proof *ret, struct aqe_err *e)
{
	AQE_AUTO_FREE uint32_t *nrs = calloc(HARD_BPF_NRS_MAX, sizeof(*nrs));
	AQE_AUTO_FREE uint16_t *sets = calloc(HARD_BPF_NRS_MAX, sizeof(*sets));
	struct hard_proof proof = { NULL, 0, 0, n_insns, 0 };
	struct prover p = { a, prog, n_insns,
			    aqe_arena_calloc(a, HARD_HOLES_MAX, sizeof(struct hard_hole)), &proof };
	struct hard_bpf_query q = { 0, nrs, 0, { { 0, 0 } } };

	if (!nrs || !sets || !p.holes)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the seccomp proof");
	for (size_t w = 0; w < AQE_COUNT(q.args); w++)
		q.args[w] = (struct hard_bpf_word)HARD_BPF_ANY;
	int rc = numbers(&p, nrs, &q.n_nrs, e);

	for (size_t i = 0; i < HARD_ARCHS_COUNT && rc >= 0; i++)
		rc = prove_arch(&p, &HARD_ARCHS[i], &q, sets, e);
	if (rc < 0)
		return rc;
	proof.holes = p.holes;
	*ret = proof;
	return 0;
}

int hard_proof_spec(struct aqe_arena *a, const struct aqe_json *seccomp, struct hard_proof *ret,
		    struct aqe_err *e)
{
	const struct hard_bpf_insn *prog = NULL;
	size_t n = 0;
	int rc = hard_scmp_compile(a, seccomp, &prog, &n, e);

	return rc < 0 ? rc : hard_proof_bpf(a, prog, n, ret, e);
}
