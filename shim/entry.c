/* SPDX-License-Identifier: MIT */
/* Where aqe-shim begins (see early.h): a call that early.c understands becomes the low-level
 * runtime at once, by the same steps as shim_low_any() and shim_low_exec(); any doubt leads to
 * libc's own start and main(). A `delete` starts the runtime as a child, and libc and main() get
 * ready while it works; and what will be put into a cgroup gets a helper. Only for a root engine,
 * whose folder is known without a look at the environment.
 *
 * This file is compiled as freestanding code: nothing of libc may be called, and the compiler may
 * call nothing for us (the makefile's EARLY flags; tests/integration/binary.bats looks). */
#include "shim/early.h"

#if defined(__x86_64__)
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define STATE_DIR     "/run/aqe-shim"
#define RUNTIME_MAX   1024 /* bytes of the runtime's path; longer ones are main()'s */
#define LOW_MAX_BYTES (256L << 20)
#define ENV_MAX       64 /* variables that are passed on */
#define POPULATE      23 /* MADV_POPULATE_WRITE, Linux 5.14 */
#define PAGE          4096UL

static long call6(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

static int open_at(int at, const char *path, int flags, unsigned long long resolve)
{
	struct open_how how;

	how.flags = (unsigned)flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	how.mode = flags & O_CREAT ? 0600 : 0;
	how.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	return (int)call6(SYS_openat2, at, (long)path, (long)&how, sizeof(how), 0);
}

static bool look(int fd, struct stat *st)
{
	return call6(SYS_fstat, fd, (long)st, 0, 0, 0) == 0;
}

/* Root's, and writable by nobody else. */
static bool is_ours(int fd, unsigned type, struct stat *st)
{
	return look(fd, st) && (st->st_mode & S_IFMT) == type && st->st_uid == 0 &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Root of the host: "0 0 4294967295" with any blanks. */
static bool is_host_root(void)
{
	static const char want[] = "0 0 4294967295";
	char text[64];
	const char *w = want;
	long n;
	int fd;

	if (call6(SYS_geteuid, 0, 0, 0, 0, 0) != 0)
		return false;
	fd = (int)call6(SYS_openat, AT_FDCWD, (long)"/proc/self/uid_map", O_RDONLY | O_CLOEXEC, 0,
			0);
	if (fd < 0)
		return false;
	n = call6(SYS_read, fd, (long)text, sizeof(text), 0, 0);
	(void)call6(SYS_close, fd, 0, 0, 0, 0);
	for (long i = 0; i < n; i++) {
		const bool blank = text[i] == ' ' || text[i] == '\n';

		if (blank && (w == want || *w == '\0'))
			continue; /* before the first, after the last */
		if (blank && *w == ' ') {
			while (i + 1 < n && text[i + 1] == ' ')
				i++;
			w++;
			continue;
		}
		if (blank || *w != text[i])
			return false;
		w++;
	}
	return n > 0 && n < (long)sizeof(text) && *w == '\0';
}

/* The container's folder, or -1. */
static int open_folder(const struct shim_early *call)
{
	char name[SHIM_EARLY_NAME];
	struct stat st;
	int state, dir;

	shim_early_name(call, name);
	state = open_at(AT_FDCWD, STATE_DIR, O_RDONLY | O_DIRECTORY, 0);
	if (state < 0 || !is_ours(state, S_IFDIR, &st))
		return -1;
	dir = open_at(state, name, O_RDONLY | O_DIRECTORY, RESOLVE_BENEATH);
	return dir < 0 || !is_ours(dir, S_IFDIR, &st) ? -1 : dir;
}

/* The checked low-level runtime that the container's folder names, or -1. `path` gets its name. */
static int open_low(int dir, char path[RUNTIME_MAX])
{
	struct stat st, self;
	long n;
	int low;

	n = call6(SYS_readlinkat, dir, (long)"runtime", (long)path, RUNTIME_MAX - 1, 0);
	if (n <= 0 || n >= RUNTIME_MAX - 1 || path[0] != '/')
		return -1;
	path[n] = '\0';
	low = (int)call6(SYS_openat, AT_FDCWD, (long)path,
			 O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0);
	if (low < 0 || !is_ours(low, S_IFREG, &st) || !(st.st_mode & S_IXUSR) ||
	    st.st_size > LOW_MAX_BYTES)
		return -1;
	/* an engine that names us as the runtime of ourselves would call for ever */
	if (call6(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/exe", (long)&self, 0, 0) != 0 ||
	    (self.st_dev == st.st_dev && self.st_ino == st.st_ino))
		return -1;
	return low;
}

static bool listed(char *const *list, size_t n, const char *entry)
{
	const size_t len = shim_early_env_name(entry);

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k <= len && list[i][k] == entry[k])
			k++;
		if (k > len) /* the "=" too */
			return true;
	}
	return false;
}

/* As shim_env_filter(); false when there are too many. */
static bool filter(char *const *envp, char *ret[ENV_MAX + 1])
{
	size_t n = 0;

	for (; *envp; envp++) {
		if (!shim_early_env_ok(*envp) || listed(ret, n, *envp))
			continue;
		if (n == ENV_MAX)
			return false;
		ret[n++] = *envp;
	}
	ret[n] = NULL;
	return true;
}

/* Not in use when it is 0, as it is without a relocation. */
static int child;

int shim_early_child(void)
{
	return child;
}

/* An engine that ignores SIGCHLD would leave us without an exit status: main() knows what to do. */
static bool has_status(void)
{
	unsigned long action[4] = { 0 }; /* handler, flags, restorer, mask */

	return call6(SYS_rt_sigaction, SIGCHLD, 0, (long)action, sizeof(action[3]), 0) == 0 &&
	       action[0] == (unsigned long)SIG_DFL;
}

/* The runtime as a child of ours. Until it is another program the child has our memory and we
 * stand still, so in between it calls no function. False when it is not running. */
static bool spawn(int low, char **argv, char *const *env)
{
	register char *const *r10 __asm__("r10") = env;
	register long r8 __asm__("r8") = AT_EMPTY_PATH;
	long pid = SYS_vfork;
	int failed = 0;

	__asm__ volatile("syscall\n"
			 "	test %%rax, %%rax\n"
			 "	jnz 1f\n"
			 "	mov %[execveat], %%eax\n"
			 "	syscall\n"
			 "	movl $1, %[failed]\n"
			 "	mov $127, %%edi\n"
			 "	mov %[exit], %%eax\n"
			 "	syscall\n"
			 "1:"
			 : "+a"(pid), [failed] "+m"(failed)
			 : "D"((long)low), "S"(""), "d"(argv), "r"(r10),
			   "r"(r8), [execveat] "i"(SYS_execveat), [exit] "i"(SYS_exit_group)
			 : "rcx", "r11", "memory");
	if (pid > 0 && failed)
		(void)call6(SYS_wait4, pid, 0, 0, 0, 0);
	if (pid <= 0 || failed)
		return false;
	child = (int)pid;
	return true;
}

/* Returns when the call is not passed on, or when main() is to finish it: what was opened is
 * close-on-exec. */
static void pass(char **argv, char *const *envp)
{
	struct shim_early call;
	char *env[ENV_MAX + 1], path[RUNTIME_MAX], *first = argv[0];
	int dir, low;

	if (!shim_early_plan(argv, &call) || !is_host_root() || !filter(envp, env))
		return;
	if (call.deletes && !has_status())
		return;
	dir = open_folder(&call);
	low = dir < 0 ? -1 : open_low(dir, path);
	if (low < 0)
		return;
	if (call.ends) /* as shim_restart_killed(): only the restart policy misses it */
		(void)open_at(dir, SHIM_EARLY_KILLED, O_WRONLY | O_CREAT, RESOLVE_BENEATH);
	if (call6(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC, 0, 0) != 0)
		return;
	argv[0] = path;
	if (call.deletes)
		(void)spawn(low, argv, env); /* otherwise main() does it */
	else
		(void)call6(SYS_execveat, low, (long)"", (long)argv, (long)env, AT_EMPTY_PATH);
	argv[0] = first;
}

/* ---- the wait for a cgroup ---- */

#define HELPER_STACK 8192

/* The kernel lets a process change its cgroup only after an RCU grace period, 5 to 20 ms, unless
 * another one has changed its own just before. The low-level runtime is going to wait for that, so
 * the wait begins here, and goes on while main() judges: a helper moves itself to where it is
 * already. It belongs to nobody's wait(): its end sends no signal. */
__attribute__((noreturn)) static void helper(void)
{
	char line[SHIM_EARLY_PROCS], procs[SHIM_EARLY_PROCS];
	long n = -1;
	int fd;

	/* an engine waits for the end of its pipes */
	if (call6(SYS_close_range, 0, ~0U, 0, 0, 0) == 0) {
		fd = (int)call6(SYS_openat, AT_FDCWD, (long)"/proc/self/cgroup",
				O_RDONLY | O_CLOEXEC, 0, 0);
		n = call6(SYS_read, fd, (long)line, sizeof(line) - 1, 0, 0);
	}
	if (n > 0) {
		line[n] = '\0';
		fd = shim_early_procs(line, procs) ? open_at(AT_FDCWD, procs, O_WRONLY, 0) : -1;
		(void)call6(SYS_write, fd, (long)"0", 1, 0, 0);
	}
	for (;;)
		(void)call6(SYS_exit_group, 0, 0, 0, 0, 0);
}

/* It shares our memory, which costs less than a copy, and has a stack of its own. */
static void start_helper(void)
{
	static char stack[HELPER_STACK] __attribute__((aligned(16)));
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long pid = SYS_clone;

	__asm__ volatile("syscall\n"
			 "	test %%rax, %%rax\n"
			 "	jnz 1f\n"
			 "	xor %%ebp, %%ebp\n"
			 "	call *%[helper]\n"
			 "1:"
			 : "+a"(pid)
			 : "D"((long)CLONE_VM), "S"(stack + sizeof(stack)), "d"(0L), "r"(r10),
			   "r"(r8), [helper] "r"(helper)
			 : "rcx", "r11", "memory");
}

/* The linker's names for the part of the image that relocation is going to write. */
extern char first_written[] __asm__("__init_array_start") __attribute__((visibility("hidden")));
extern char last_written[] __asm__("__bss_start") __attribute__((visibility("hidden")));

void shim_entry_c(long *stack);

/* `stack` is what the kernel gives a new process: argc, argv, NULL, envp, NULL, ... */
void shim_entry_c(long *stack)
{
	char **argv = (char **)(stack + 1);
	const unsigned long from = (unsigned long)first_written & ~(PAGE - 1);
	const unsigned long to = ((unsigned long)last_written + PAGE - 1) & ~(PAGE - 1);

	if (stack[0] > 0 && shim_early_joins(argv) && is_host_root())
		start_helper();
	else if (stack[0] > 0)
		pass(argv, argv + stack[0] + 1);
	/* each of these pages would be a fault of its own; it does not matter if this fails */
	(void)call6(SYS_madvise, (long)from, (long)(to - from), POPULATE, 0, 0);
}

/* The stack is given on as it was; rdx is what the kernel wants called at exit (nothing). */
__asm__(".pushsection .text\n"
	".globl shim_entry\n"
	".hidden shim_entry\n"
	".type shim_entry, @function\n"
	"shim_entry:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	endbr64\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	mov %rsp, %rbx\n"
	"	mov %rdx, %r12\n"
	"	and $-16, %rsp\n"
	"	call shim_entry_c\n"
	"	mov %rbx, %rsp\n"
	"	mov %r12, %rdx\n"
	"	jmp _start\n"
	"	.cfi_endproc\n"
	".size shim_entry, . - shim_entry\n"
	".popsection\n");

#else
/* elsewhere libc's _start is the first thing that runs */
int shim_early_child(void)
{
	return 0;
}
#endif
