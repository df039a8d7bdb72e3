/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hardening/scmp.h"
#include "hardening/seccomp.h"
#include "hardening/seccomp_proof.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define ARENA ((size_t)8 << 20)

static struct aqe_arena *arena;

static void setup(void)
{
	arena = aqe_arena_new(ARENA);
	ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static struct aqe_json *parse(const char *text, size_t len)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *root = NULL;

	ck_assert_msg(!aqe_json_parse(arena, text, len, &AQE_JSON_LIMITS_DEFAULT, &root, &e), "%s",
		      e.text);
	return root;
}

static struct aqe_json *corpus(const char *name)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	AQE_AUTO_FD int fd = open("tests/corpus/spec", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_msg(!aqe_fs_read_beneath(fd, name, AQE_FS_REGULAR, &b, &e), "%s", e.text);
	return parse(aqe_buf_str(&b), b.len);
}

static bool x86_64(void)
{
	const struct hard_arch *native = hard_arch_native();

	return native && strcmp(native->label, "x86_64") == 0;
}

/* ---- the lists ---- */

static bool has(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i], name) == 0)
			return true;
	}
	return false;
}

START_TEST(allow__is_sorted_known_and_disjoint_from_forbidden)
{
	for (size_t i = 0; i < HARD_SECCOMP_ALLOW_COUNT; i++) {
		const char *name = HARD_SECCOMP_ALLOW[i];

		ck_assert_msg(hard_seccomp_known(name), "%s", name);
		ck_assert_msg(!has(HARD_SECCOMP_FORBIDDEN, HARD_SECCOMP_FORBIDDEN_COUNT, name),
			      "%s", name);
		if (i)
			ck_assert_msg(strcmp(HARD_SECCOMP_ALLOW[i - 1], name) < 0, "%s", name);
	}
}
END_TEST

/* Too new for libseccomp 2.5.4: a filter that names it is refused as unknown. */
static const char *const newer[] = { "open_tree_attr", NULL };

START_TEST(forbidden__is_sorted_and_known)
{
	for (size_t i = 0; i < HARD_SECCOMP_FORBIDDEN_COUNT; i++) {
		const char *name = HARD_SECCOMP_FORBIDDEN[i];

		ck_assert_msg(hard_seccomp_known(name) || aqe_str_in(name, newer), "%s", name);
		if (i)
			ck_assert_msg(strcmp(HARD_SECCOMP_FORBIDDEN[i - 1], name) < 0, "%s", name);
	}
}
END_TEST

/* Neither allowed nor forbidden: of no use in a container, or of no kernel. */
static const char *const soft[] = {
	"adjtimex",      "afs_syscall", "clock_adjtime",    "epoll_ctl_old",    "epoll_wait_old",
	"fanotify_mark", "getpmsg",     "process_mrelease", "process_vm_readv", "process_vm_writev",
	"ptrace",        "putpmsg",     "remap_file_pages", "security",         "tuxcall",
	"vserver",       NULL,
};
static const char *const by_argument[] = { "clone",  "mknod",      "mknodat", "personality",
					   "socket", "socketpair", NULL };

START_TEST(allow__is_the_table_less_forbidden_soft_and_argument_rules)
{
	size_t n = 0;

	if (!x86_64())
		return;
	for (uint32_t nr = 0; nr < 1000; nr++) {
		const char *name = hard_scmp_name(arena, hard_arch_native(), nr);
		bool allowed;

		if (!name)
			continue;
		allowed = has(HARD_SECCOMP_ALLOW, HARD_SECCOMP_ALLOW_COUNT, name);
		n += allowed;
		ck_assert_msg(allowed + aqe_str_in(name, soft) + aqe_str_in(name, by_argument) +
					      has(HARD_SECCOMP_FORBIDDEN,
						  HARD_SECCOMP_FORBIDDEN_COUNT, name) ==
				      1,
			      "'%s' must be in one list", name);
	}
	ck_assert_uint_eq(n, HARD_SECCOMP_ALLOW_COUNT);
}
END_TEST

START_TEST(known__takes_exact_names)
{
	static const char *const good[] = { "read",   "clone3", "socketcall", "open",
					    "umount", "stime",  "futex_waitv" };
	static const char *const bad[] = { "", "READ", "read ", "not_a_syscall", "0", "sys_read" };

	for (size_t i = 0; i < AQE_COUNT(good); i++)
		ck_assert_msg(hard_seccomp_known(good[i]), "%s", good[i]);
	for (size_t i = 0; i < AQE_COUNT(bad); i++)
		ck_assert_msg(!hard_seccomp_known(bad[i]), "%s", bad[i]);
	ck_assert(!hard_seccomp_known(NULL));
}
END_TEST

/* ---- the frozen filter ---- */

START_TEST(frozen__is_the_corpus_filter)
{
	const struct aqe_json *want = aqe_json_at(corpus("ok-base.json"), "/linux/seccomp");
	const struct aqe_json *frozen = hard_seccomp_frozen(arena);

	ck_assert_ptr_nonnull(want);
	ck_assert_ptr_nonnull(frozen);
	if (!x86_64())
		return;
	ck_assert(aqe_json_equal(want, frozen));
	ck_assert(hard_seccomp_is_frozen(want));
}
END_TEST

START_TEST(is_frozen__notices_the_smallest_change)
{
	static const char *const edits[] = { "/syscalls/0/names/281", "/syscalls/1/args/0",
					     "/syscalls/16", "/defaultErrnoRet",
					     "/architectures/0" };
	struct aqe_json *f = hard_seccomp_frozen(arena);

	ck_assert(hard_seccomp_is_frozen(f));
	for (size_t i = 0; i < AQE_COUNT(edits); i++) {
		struct aqe_json *copy = aqe_json_copy(arena, f);

		ck_assert_ptr_nonnull(aqe_json_at(copy, edits[i]));
		aqe_json_detach(aqe_json_at(copy, edits[i]));
		ck_assert_msg(!hard_seccomp_is_frozen(copy), "%s", edits[i]);
	}
	ck_assert_int_eq(aqe_json_append(aqe_json_at(f, "/syscalls/0/names"),
					 aqe_json_new_str(arena, "bpf")),
			 0);
	ck_assert(!hard_seccomp_is_frozen(f));
	ck_assert(!hard_seccomp_is_frozen(NULL));
	ck_assert(!hard_seccomp_is_frozen(aqe_json_new_null(arena)));
}
END_TEST

/* Every value of the tree counts: each is taken out, and each text changed, one at a time. */
START_TEST(is_frozen__looks_at_every_value)
{
	struct aqe_json *f = hard_seccomp_frozen(arena);
	struct aqe_json *v = f;
	size_t changed = 0;

	while (v) {
		const char *text = v->text;

		if (text) {
			v->text = "1x";
			ck_assert(!hard_seccomp_is_frozen(f));
			v->text = text;
			changed++;
		}
		if (v->first) {
			v = v->first;
			continue;
		}
		while (v != f && !v->next)
			v = v->parent;
		v = v == f ? NULL : v->next;
	}
	ck_assert(hard_seccomp_is_frozen(f));
	ck_assert_uint_eq(changed, 3 + 1 + HARD_SECCOMP_ALLOW_COUNT + 16 * 2 + 17 * 4 + 3);
}
END_TEST

START_TEST(frozen__is_null_when_memory_ends)
{
	bool built = false;

	for (size_t max = 256; !built && max < ((size_t)1 << 20); max += max / 8) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(max);

		ck_assert_ptr_nonnull(a);
		built = hard_seccomp_frozen(a) != NULL;
	}
	ck_assert(built);
}
END_TEST

/* Runs at every start: 10 ms for 100 is a hundred times what it takes. */
START_TEST(frozen__is_built_quickly)
{
	struct timespec a, b;
	long ns;

	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &a), 0);
	for (int i = 0; i < 100; i++) {
		AQE_AUTO_ARENA struct aqe_arena *t = aqe_arena_new(ARENA);

		ck_assert_ptr_nonnull(hard_seccomp_frozen(t));
	}
	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &b), 0);
	ns = (b.tv_sec - a.tv_sec) * 1000000000L + (b.tv_nsec - a.tv_nsec);
	if (getenv("AQE_TEST_TIMES"))
		printf("frozen filter: %ld ns\n", ns / 100);
	ck_assert_int_lt(ns, 2000000000L);
}
END_TEST

START_TEST(frozen__passes_structure_and_proof)
{
	const struct aqe_json *frozen = hard_seccomp_frozen(arena);
	struct hard_proof proof = { 0 };
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_report r;

	hard_report_init(&r, arena);
	hard_seccomp_structure(frozen, &r);
	ck_assert_int_eq(r.result[HARD_SECCOMP], HARD_PASS);
	ck_assert_msg(!hard_proof_spec(arena, frozen, &proof, &e), "%s", e.text);
	ck_assert_msg(proof.n_all == 0, "%s", proof.n_holes ? proof.holes[0].call : "");
}
END_TEST

/* ---- the frozen filter in the kernel ---- */

static struct sock_filter insns[HARD_BPF_INSNS_MAX];

/* Loads the frozen filter into this process; only in a child. */
static bool load_frozen(void)
{
	const struct aqe_json *frozen = hard_seccomp_frozen(arena);
	const struct hard_bpf_insn *prog = NULL;
	struct sock_fprog fprog = { 0, insns };
	struct aqe_err e = AQE_ERR_INIT;
	size_t n = 0;

	if (hard_scmp_compile(arena, frozen, &prog, &n, &e) || n > AQE_COUNT(insns))
		return false;
	for (size_t i = 0; i < n; i++)
		insns[i] = (struct sock_filter){ prog[i].code, prog[i].jt, prog[i].jf, prog[i].k };
	fprog.len = (unsigned short)n;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog) == 0;
}

#define HIGH 0x100000000L
/* `err`: errno the filter gives; 0: the filter lets it through, whatever the kernel then says */
static const struct {
	const char *what;
	long nr, arg[6];
	int err;
} calls[] = {
	{ "unshare(NEWUSER)", SYS_unshare, { CLONE_NEWUSER }, EPERM },
	{ "unshare(0)", SYS_unshare, { 0 }, EPERM },
	{ "setns", SYS_setns, { -1, 0 }, EPERM },
	{ "mount", SYS_mount, { 0 }, EPERM },
	{ "clone(NEWUSER)", SYS_clone, { CLONE_NEWUSER | SIGCHLD }, EPERM },
	{ "clone(NEWNET, high bits)", SYS_clone, { HIGH | CLONE_NEWNET }, EPERM },
	{ "clone3", SYS_clone3, { 0 }, ENOSYS },
	{ "bpf", SYS_bpf, { 0 }, EPERM },
	{ "io_uring_setup", SYS_io_uring_setup, { 1 }, EPERM },
	{ "keyctl", SYS_keyctl, { 0 }, EPERM },
	{ "ptrace", SYS_ptrace, { 0 }, EPERM },
	{ "process_vm_readv", SYS_process_vm_readv, { 0 }, EPERM },
	{ "number 999", 999, { 0 }, EPERM },
	{ "socket(UNIX)", SYS_socket, { AF_UNIX, SOCK_STREAM }, 0 },
	{ "socket(INET)", SYS_socket, { AF_INET, SOCK_DGRAM }, 0 },
	{ "socket(INET6)", SYS_socket, { AF_INET6, SOCK_DGRAM }, 0 },
	{ "socket(NETLINK_ROUTE)", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, 0 },
	{ "socket(NETLINK_NETFILTER)", SYS_socket, { AF_NETLINK, SOCK_RAW, 12 }, EPERM },
	{ "socket(NETLINK, high bits)", SYS_socket, { AF_NETLINK, SOCK_RAW, HIGH | 12 }, EPERM },
	{ "socket(VSOCK)", SYS_socket, { AF_VSOCK, SOCK_STREAM }, EPERM },
	{ "socket(VSOCK, high bits)", SYS_socket, { HIGH | AF_VSOCK, SOCK_STREAM }, EPERM },
	{ "socket(ALG)", SYS_socket, { AF_ALG, SOCK_SEQPACKET }, EPERM },
	{ "socket(ALG, high bits)", SYS_socket, { HIGH | AF_ALG, SOCK_SEQPACKET }, EPERM },
	{ "socket(PACKET)", SYS_socket, { AF_PACKET, SOCK_RAW }, EPERM },
	{ "mknodat(char device)", SYS_mknodat, { -1, 0, S_IFCHR | 0600 }, EPERM },
	{ "mknodat(block device)", SYS_mknodat, { -1, 0, S_IFBLK | 0600 }, EPERM },
	{ "mknodat(fifo)", SYS_mknodat, { -1, 0, S_IFIFO | 0600 }, 0 },
	{ "personality(query)", SYS_personality, { 0xffffffffL }, 0 },
	{ "personality(no random)", SYS_personality, { 0x40000 }, EPERM },
	{ "getpid", SYS_getpid, { 0 }, 0 },
	{ "kill(0 signals)", SYS_kill, { 0, 0 }, 0 },
};

/* 335 and 336 are no system calls: the kernel answers before a filter sees them (measured). */
static bool is_answered_before(uint32_t nr)
{
	return nr == 335 || nr == 336;
}

/* In a child under the filter: every number of `nrs`, with all bits of all arguments set; the errno
 * values go to `fd`. Only numbers that the filter denies: nothing here may really run. */
__attribute__((noreturn)) static void try_numbers(const uint32_t *nrs, size_t n, int fd)
{
	static unsigned char got[HARD_BPF_NRS_BASE];

	(void)alarm(30);
	if (!load_frozen())
		_exit(254);
	for (size_t i = 0; i < n; i++) {
		long rc;

		errno = 0;
		rc = syscall((long)nrs[i], -1L, -1L, -1L, -1L, -1L, -1L);
		got[i] = (unsigned char)(rc < 0 ? errno : 0);
	}
	_exit(write(fd, got, n) == (ssize_t)n ? 0 : 253);
}

/* What the proof calls denied for every argument is denied by the kernel. */
START_TEST(frozen__denies_in_the_kernel_all_that_the_proof_says)
{
	static uint32_t nrs[HARD_BPF_NRS_BASE], denied[HARD_BPF_NRS_BASE];
	static uint16_t sets[HARD_BPF_NRS_BASE];
	static unsigned char got[HARD_BPF_NRS_BASE];
	struct hard_bpf_query q = {
		hard_arch_native()->audit, nrs, HARD_BPF_NRS_BASE, { { 0, 0 } }
	};
	const struct hard_bpf_insn *prog = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	size_t n_insns = 0, n = 0;
	int ends[2], status = 0;
	pid_t pid;

	for (uint32_t i = 0; i < HARD_BPF_NRS_BASE; i++)
		nrs[i] = i;
	for (size_t i = 0; i < AQE_COUNT(q.args); i++)
		q.args[i] = (struct hard_bpf_word)HARD_BPF_ANY;
	ck_assert(!hard_scmp_compile(arena, hard_seccomp_frozen(arena), &prog, &n_insns, &e));
	ck_assert_msg(!hard_bpf_reach(prog, n_insns, &q, sets, &e), "%s", e.text);
	for (uint32_t i = 0; i < HARD_BPF_NRS_BASE; i++) {
		if (sets[i] == HARD_BPF_ERRNO && !is_answered_before(i))
			denied[n++] = i;
		ck_assert_msg(sets[i] == HARD_BPF_ERRNO || (sets[i] & HARD_BPF_OPEN), "%u: %x", i,
			      (unsigned)sets[i]);
	}
	ck_assert_uint_gt(n, 700);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		try_numbers(denied, n, ends[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
	ck_assert_int_eq(read(ends[0], got, sizeof(got)), (ssize_t)n);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(got[i] == (denied[i] == SYS_clone3 ? ENOSYS : EPERM), "%u: errno %d",
			      denied[i], got[i]);
	(void)close(ends[0]);
	(void)close(ends[1]);
}
END_TEST

/* Exit status of the child: errno, 0 for success, 254 when the filter could not be loaded. */
static int errno_in_child(size_t i)
{
	int status = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		const long *a = calls[i].arg;
		long rc;

		if (!load_frozen())
			_exit(254);
		errno = 0;
		rc = syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		_exit(rc < 0 ? errno : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(frozen__does_in_the_kernel_what_it_says)
{
	int got = errno_in_child((size_t)_i);

	if (calls[_i].err)
		ck_assert_msg(got == calls[_i].err, "%s: %d", calls[_i].what, got);
	else /* EPERM would be ours; EFAULT and the like are the kernel's */
		ck_assert_msg(got != EPERM && got != ENOSYS && got != 254, "%s: %d", calls[_i].what,
			      got);
}
END_TEST

START_TEST(frozen__lets_fork_and_threads_work)
{
	int status = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		pid_t child;

		if (!load_frozen())
			_exit(254);
		child = fork();
		if (child == 0)
			_exit(7);
		if (child < 0 || waitpid(child, &status, 0) != child)
			_exit(1);
		_exit(WEXITSTATUS(status));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 7 << 8);
}
END_TEST

/* ---- R31 ---- */

/* Every row of the corpus that is about the filter alone. */
START_TEST(judge__gives_the_corpus_its_verdicts)
{
	AQE_AUTO_FILE FILE *f = fopen("tests/corpus/spec/index.tsv", "re");
	char line[1024];
	size_t good = 0, bad = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		struct hard_report r;
		bool ok = aqe_starts(line, "ok-");

		if (!ok && !aqe_starts(line, "seccomp-"))
			continue;
		line[strcspn(line, "\t")] = '\0';
		hard_report_init(&r, arena);
		hard_seccomp_judge(aqe_json_at(corpus(line), "/linux/seccomp"), NULL, &r);
		ck_assert_msg(r.result[HARD_SECCOMP] == (ok ? HARD_PASS : HARD_FAIL), "%s: %s",
			      line, r.first ? r.first->found : "passed");
		*(ok ? &good : &bad) += 1;
		aqe_arena_free(arena);
		arena = aqe_arena_new(ARENA);
	}
	ck_assert_uint_ge(good, 20);
	ck_assert_uint_ge(bad, 35);
}
END_TEST

#define ONE(rule)                                                                         \
	"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\"]," \
	"\"syscalls\":[" rule "]}"
#define TOP(members) \
	"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\"]" members "}"
#define ALLOW(name, args) ONE("{\"names\":[\"" name "\"],\"action\":\"SCMP_ACT_ALLOW\"" args "}")
#define ARG(index, value, two, op)                                                                 \
	"{\"index\":" index ",\"value\":" value ",\"valueTwo\":" two ",\"op\":\"SCMP_CMP_" op "\"" \
	"}"
#define ARGS(list) ",\"args\":[" list "]"

/* `pointer` and `wanted` (a part of it) of the only finding; NULL: passes. */
static const struct {
	const char *text, *pointer, *wanted;
} filters[] = {
	{ TOP(""), NULL, NULL },
	{ TOP(",\"syscalls\":[]"), NULL, NULL },
	{ "[]", "/linux/seccomp", "frozen" },
	{ "{\"architectures\":[\"SCMP_ARCH_X86_64\"]}", "/defaultAction", "KILL" },
	{ "{\"defaultAction\":\"SCMP_ACT_LOG\",\"architectures\":[\"SCMP_ARCH_X86_64\"]}",
	  "/defaultAction", "KILL" },
	{ "{\"defaultAction\":\"SCMP_ACT_TRAP\",\"architectures\":[\"SCMP_ARCH_X86_64\"]}",
	  "/defaultAction", "KILL" },
	{ "{\"defaultAction\":\"scmp_act_errno\",\"architectures\":[\"SCMP_ARCH_X86_64\"]}",
	  "/defaultAction", "KILL" },
	{ "{\"defaultAction\":\"SCMP_ACT_KILL\",\"architectures\":[\"SCMP_ARCH_X86_64\"]}", NULL,
	  NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_KILL\"}", "/architectures", "SCMP_ARCH_X86_64" },
	{ "{\"defaultAction\":\"SCMP_ACT_KILL\",\"architectures\":[]}", "/architectures",
	  "SCMP_ARCH_X86_64" },
	{ "{\"defaultAction\":\"SCMP_ACT_KILL\",\"architectures\":[\"SCMP_ARCH_X86_64\","
	  "\"SCMP_ARCH_X32\"]}",
	  NULL, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_KILL\",\"architectures\":[\"SCMP_ARCH_X86_64\",\"x86\"]}",
	  "/architectures/1", "exact name" },
	{ TOP(",\"defaultErrnoRet\":1"), NULL, NULL },
	{ TOP(",\"defaultErrnoRet\":4095"), NULL, NULL },
	{ TOP(",\"defaultErrnoRet\":4096"), "/defaultErrnoRet", "1 to 4095" },
	{ TOP(",\"defaultErrnoRet\":0"), "/defaultErrnoRet", "1 to 4095" },
	{ TOP(",\"listenerPath\":\"\""), "/listenerPath", "no other members" },
	{ TOP(",\"listenerMetadata\":\"\""), "/listenerMetadata", "no other members" },
	{ TOP(",\"flags\":[]"), NULL, NULL },
	{ TOP(",\"flags\":[\"SECCOMP_FILTER_FLAG_SPEC_ALLOW\"]"), "/flags/0", "LOG and TSYNC" },
	{ TOP(",\"flags\":[\"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV\"]"), "/flags/0", "LOG" },
	{ ALLOW("read", ""), NULL, NULL },
	{ ALLOW("Read", ""), "/syscalls/0/names/0", "libseccomp knows" },
	{ ONE("{\"names\":[\"bpf\"],\"action\":\"SCMP_ACT_ERRNO\"}"), NULL, NULL },
	{ ONE("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_LOG\"}"), NULL, NULL },
	{ ONE("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_TRACE\"}"), "/syscalls/0/action",
	  "TRACE" },
	{ ONE("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_NOTIFY\"}"), "/syscalls/0/action",
	  "NOTIFY" },
	{ ONE("{\"names\":[\"read\"]}"), "/syscalls/0/action", "an action" },
	{ ONE("{\"action\":\"SCMP_ACT_ALLOW\"}"), "/syscalls/0/names", "at least one" },
	{ ONE("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"comment\":\"\"}"),
	  "/syscalls/0/comment", "no other members" },
	{ ONE("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":0}"),
	  "/syscalls/0/errnoRet", "1 to 4095" },
	{ ONE("7"), "/syscalls/0", "an object" },
	/* conditions */
	{ ALLOW("read", ARGS(ARG("5", "1", "0", "GE"))), NULL, NULL },
	{ ALLOW("read", ARGS(ARG("6", "1", "0", "GE"))), "/syscalls/0/args/0/index", "0 to 5" },
	{ ALLOW("read", ARGS(ARG("1", "18446744073709551615", "0", "EQ"))), NULL, NULL },
	{ ALLOW("read", ARGS(ARG("1", "18446744073709551616", "0", "EQ"))),
	  "/syscalls/0/args/0/value", "64-bit" },
	{ ALLOW("read", ARGS(ARG("1", "-1", "0", "EQ"))), "/syscalls/0/args/0/value", "64-bit" },
	{ ALLOW("read", ARGS(ARG("1", "1", "0", "EQU"))), "/syscalls/0/args/0/op", "operator" },
	{ ALLOW("read", ARGS("{\"index\":0,\"value\":1}")), "/syscalls/0/args/0/op", "operator" },
	{ ALLOW("read", ARGS(ARG("1", "1", "0", "EQ") "," ARG("1", "2", "0", "EQ"))),
	  "/syscalls/0/args/1/index", "one condition" },
	{ ALLOW("clone", ARGS(ARG("0", "2114060288", "0", "MASKED_EQ"))), NULL, NULL },
	{ ALLOW("clone", ARGS(ARG("0", "4294967295", "17", "MASKED_EQ"))), NULL, NULL },
	{ ALLOW("clone", ARGS(ARG("0", "17", "0", "EQ"))), NULL, NULL },
	{ ALLOW("socket", ARGS(ARG("0", "4294967295", "1", "MASKED_EQ"))), NULL, NULL },
	{ ALLOW("socket", ARGS(ARG("0", "2", "0", "EQ"))), NULL, NULL },
	{ ALLOW("socket", ARGS(ARG("0", "4294967295", "16",
				   "MASKED_EQ") "," ARG("2", "4294967295", "0", "MASKED_EQ"))),
	  NULL, NULL },
};

/* What a filter of the right form lets through: `hole` is a part of a finding, NULL: proved. */
static const struct {
	const char *text, *hole;
} behaviours[] = {
	{ TOP(""), NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_KILL\",\"architectures\":[\"SCMP_ARCH_X86_64\","
	  "\"SCMP_ARCH_X86\"],\"syscalls\":[{\"names\":[\"socket\"],\"action\":\"SCMP_ACT_ALLOW\","
	  "\"args\":[{\"index\":0,\"value\":4294967295,\"valueTwo\":1,\"op\":"
	  "\"SCMP_CMP_MASKED_EQ\"}]}]}",
	  "socketcall is let through on i386" },
	{ ALLOW("read", ""), NULL },
	{ ALLOW("bpf", ""), "bpf is let through on x86_64" },
	{ ALLOW("bpf", ARGS(ARG("0", "1", "0", "EQ"))), "bpf is let through" },
	{ ONE("{\"names\":[\"bpf\"],\"action\":\"SCMP_ACT_ERRNO\"}"), NULL },
	{ ONE("{\"names\":[\"bpf\"],\"action\":\"SCMP_ACT_LOG\"}"), "bpf is let through" },
	/* clone: each namespace bit must be masked */
	{ ALLOW("clone", ""), "clone(CLONE_NEWUSER) is let through" },
	{ ALLOW("clone", ARGS(ARG("0", "2114060288", "0", "MASKED_EQ"))), NULL },
	{ ALLOW("clone", ARGS(ARG("0", "4294967295", "17", "MASKED_EQ"))), NULL },
	{ ALLOW("clone", ARGS(ARG("0", "17", "0", "EQ"))), NULL },
	{ ALLOW("clone", ARGS(ARG("0", "268435456", "0", "EQ"))), "clone(CLONE_NEWUSER)" },
	{ ALLOW("clone", ARGS(ARG("1", "2114060288", "0", "MASKED_EQ"))), "clone(CLONE_NEWNS)" },
	{ ALLOW("clone", ARGS(ARG("0", "1845624832", "0", "MASKED_EQ"))), "clone(CLONE_NEWUSER)" },
	{ ALLOW("clone", ARGS(ARG("0", "131072", "0", "LT"))), NULL },
	/* socket: families under the 32-bit mask */
	{ ALLOW("socket", ""), ", and " },
	{ ALLOW("socketpair", ""), "socketpair(AF_UNSPEC)" },
	{ ALLOW("socket", ARGS(ARG("0", "4294967295", "1", "MASKED_EQ"))), NULL },
	{ ALLOW("socket", ARGS(ARG("0", "2", "0", "EQ"))), NULL },
	{ ALLOW("socket", ARGS(ARG("0", "255", "1", "MASKED_EQ"))), NULL },
	{ ALLOW("socket", ARGS(ARG("0", "4294967295", "40", "MASKED_EQ"))), "socket(AF_VSOCK)" },
	{ ALLOW("socket", ARGS(ARG("0", "40", "0", "EQ"))), "socket(AF_VSOCK)" },
	{ ALLOW("socket", ARGS(ARG("0", "40", "0", "NE"))), "socket(AF_UNSPEC)" },
	{ ALLOW("socket", ARGS(ARG("0", "4294967295", "16", "MASKED_EQ"))),
	  "socket(NETLINK_USERSOCK)" },
	{ ALLOW("socket", ARGS(ARG("0", "4294967295", "16",
				   "MASKED_EQ") "," ARG("2", "4294967295", "0", "MASKED_EQ"))),
	  NULL },
	{ ALLOW("personality", ""), "personality(READ_IMPLIES_EXEC)" },
};

static bool has_finding(const struct hard_report *r, const char *part)
{
	for (const struct hard_finding *f = r->first; f; f = f->next) {
		if (strstr(f->found, part))
			return true;
	}
	return false;
}

START_TEST(judge__names_what_is_let_through)
{
	const struct aqe_json *f = parse(behaviours[_i].text, strlen(behaviours[_i].text));
	struct hard_report r;

	if (!x86_64())
		return;
	hard_report_init(&r, arena);
	hard_seccomp_judge(f, NULL, &r);
	if (!behaviours[_i].hole) {
		ck_assert_msg(r.result[HARD_SECCOMP] == HARD_PASS, "%s",
			      r.first ? r.first->found : "undecided");
		return;
	}
	ck_assert_int_eq(r.result[HARD_SECCOMP], HARD_FAIL);
	ck_assert_msg(has_finding(&r, behaviours[_i].hole), "%s", r.first->found);
}
END_TEST

/* Only a proof is remembered, under a name that every part of the filter changes. */
START_TEST(judge__remembers_proofs)
{
	char dir[] = "/tmp/aqe-proof-XXXXXX", key[HARD_PROOF_KEY], other[HARD_PROOF_KEY];
	const char *good = ALLOW("read", ""), *bad = ALLOW("bpf", "");
	struct hard_proofs proofs = { -1 };
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_report r;

	if (!x86_64())
		return;
	ck_assert_ptr_nonnull(mkdtemp(dir));
	proofs.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(hard_seccomp_key(parse(good, strlen(good)), key, &e), 0);
	ck_assert_int_eq(hard_seccomp_key(parse(bad, strlen(bad)), other, &e), 0);
	ck_assert_str_ne(key, other);
	for (int i = 0; i < 2; i++) {
		hard_report_init(&r, arena);
		hard_seccomp_judge(parse(good, strlen(good)), &proofs, &r);
		ck_assert_int_eq(r.result[HARD_SECCOMP], HARD_PASS);
		ck_assert_int_eq(faccessat(proofs.dir_fd, key, F_OK, 0), 0);
		hard_report_init(&r, arena);
		hard_seccomp_judge(parse(bad, strlen(bad)), &proofs, &r);
		ck_assert_int_eq(r.result[HARD_SECCOMP], HARD_FAIL);
		ck_assert_int_ne(faccessat(proofs.dir_fd, other, F_OK, 0), 0);
	}
	/* the file alone decides the second time: that is what makes it cheap */
	ck_assert_int_eq(renameat(proofs.dir_fd, key, proofs.dir_fd, other), 0);
	hard_report_init(&r, arena);
	hard_seccomp_judge(parse(bad, strlen(bad)), &proofs, &r);
	ck_assert_int_eq(r.result[HARD_SECCOMP], HARD_PASS);
	ck_assert_int_eq(unlinkat(proofs.dir_fd, other, 0), 0);
	(void)close(proofs.dir_fd);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* What moves from one piece to the next changes the key, and so does what the rules of form refuse.
 */
START_TEST(key__tells_filters_apart)
{
	static const char *const texts[] = {
		ONE("{\"names\":[\"read\",\"write\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
		ONE("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\"},"
		    "{\"names\":[\"write\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
		ONE("{\"names\":[\"readwrite\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
		ONE("{\"names\":[\"read\",\"write\"],\"action\":\"SCMP_ACT_LOG\"}"),
		ONE("{\"names\":[\"read\",\"write\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":"
		    "1}"),
		ALLOW("read", ARGS(ARG("0", "12", "3", "EQ"))),
		ALLOW("read", ARGS(ARG("0", "1", "23", "EQ"))),
		ALLOW("read", ARGS(ARG("1", "12", "3", "EQ"))),
		ALLOW("read", ARGS(ARG("0", "12", "3", "NE"))),
		TOP(""),
		TOP(",\"defaultErrnoRet\":1"),
		TOP(",\"defaultErrnoRet\":\"1\""),
		TOP(",\"flags\":[]"),
		TOP(",\"flags\":{}"),
		TOP(",\"flags\":[true]"),
		TOP(",\"flags\":[false]"),
		TOP(",\"flags\":[null]"),
		TOP(",\"flags\":[\"\"]"),
		TOP(",\"flags\":[\"\",\"\"]"),
		TOP(",\"listenerPath\":\"/run/x\""),
		TOP(",\"listenerPath/\":\"run/x\""),
	};
	char keys[AQE_COUNT(texts)][HARD_PROOF_KEY];
	struct aqe_err e = AQE_ERR_INIT;

	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		ck_assert_int_eq(hard_seccomp_key(parse(texts[i], strlen(texts[i])), keys[i], &e),
				 0);
		for (size_t j = 0; j < i; j++)
			ck_assert_msg(strcmp(keys[i], keys[j]) != 0, "%s\n%s", texts[i], texts[j]);
	}
}
END_TEST

START_TEST(structure__names_the_place_and_the_rule)
{
	const struct aqe_json *f = parse(filters[_i].text, strlen(filters[_i].text));
	struct hard_report r;

	if (!x86_64())
		return;
	hard_report_init(&r, arena);
	hard_seccomp_structure(f, &r);
	if (!filters[_i].pointer) {
		ck_assert_msg(r.result[HARD_SECCOMP] == HARD_PASS, "%s: %s", r.first->pointer,
			      r.first->wanted);
		return;
	}
	ck_assert_int_eq(r.result[HARD_SECCOMP], HARD_FAIL);
	ck_assert_uint_eq(r.n_findings, 1);
	ck_assert_str_eq(r.first->pointer, filters[_i].pointer);
	ck_assert_msg(strstr(r.first->wanted, filters[_i].wanted), "%s", r.first->wanted);
}
END_TEST

START_TEST(structure__refuses_an_absent_filter)
{
	struct hard_report r;

	hard_report_init(&r, arena);
	hard_seccomp_structure(NULL, &r);
	ck_assert_int_eq(r.result[HARD_SECCOMP], HARD_FAIL);
	ck_assert_str_eq(r.first->pointer, "/linux/seccomp");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_seccomp");
	TCase *t = tcase_create("seccomp");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, allow__is_sorted_known_and_disjoint_from_forbidden);
	tcase_add_test(t, forbidden__is_sorted_and_known);
	tcase_add_test(t, allow__is_the_table_less_forbidden_soft_and_argument_rules);
	tcase_add_test(t, known__takes_exact_names);
	tcase_add_test(t, frozen__is_the_corpus_filter);
	tcase_add_test(t, is_frozen__notices_the_smallest_change);
	tcase_add_test(t, is_frozen__looks_at_every_value);
	tcase_add_test(t, frozen__is_null_when_memory_ends);
	tcase_add_test(t, frozen__is_built_quickly);
	tcase_add_test(t, frozen__passes_structure_and_proof);
	tcase_add_loop_test(t, frozen__does_in_the_kernel_what_it_says, 0, (int)AQE_COUNT(calls));
	tcase_add_test(t, frozen__denies_in_the_kernel_all_that_the_proof_says);
	tcase_add_test(t, frozen__lets_fork_and_threads_work);
	tcase_add_test(t, judge__gives_the_corpus_its_verdicts);
	tcase_add_loop_test(t, judge__names_what_is_let_through, 0, (int)AQE_COUNT(behaviours));
	tcase_add_test(t, judge__remembers_proofs);
	tcase_add_test(t, key__tells_filters_apart);
	tcase_add_loop_test(t, structure__names_the_place_and_the_rule, 0, (int)AQE_COUNT(filters));
	tcase_add_test(t, structure__refuses_an_absent_filter);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
