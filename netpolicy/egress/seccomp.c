/* SPDX-License-Identifier: MIT */
/* Filters of worker, dialer and companion, written out as BPF: allow-lists for one architecture. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netpolicy/egress/confine.h"
#include "shim/core/text.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp filter for this architecture"
#endif

#define NR          offsetof(struct seccomp_data, nr)
#define ARG_LOW(i)  (offsetof(struct seccomp_data, args) + 8 * (i))
#define PROGRAM_MAX 256
#define X32_BIT     0x40000000U

static const int BOTH[] = {
	SYS_read,         SYS_close,          SYS_recvmsg,       SYS_sendmsg,
	SYS_recvfrom,     SYS_sendto,         SYS_epoll_create1, SYS_epoll_ctl,
	SYS_epoll_pwait,  SYS_munmap,         SYS_mremap,        SYS_madvise,
	SYS_brk,          SYS_futex,          SYS_exit,          SYS_exit_group,
	SYS_rt_sigreturn, SYS_clock_gettime,  SYS_getsockopt,    SYS_setsockopt,
	SYS_fcntl,        SYS_shutdown,       SYS_pread64,       SYS_restart_syscall,
	SYS_getrandom,    SYS_rt_sigprocmask, SYS_getpid,        SYS_gettid,
	SYS_tgkill,       SYS_write,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
};
static const int WORKER[] = { SYS_accept4, SYS_splice, SYS_pipe2 };
/* What libraries ask for that read files of the system and speak over sockets. */
static const int LIBRARIES[] = {
	SYS_writev,     SYS_getsockname,  SYS_getpeername, SYS_ppoll,     SYS_newfstatat,
	SYS_fstat,      SYS_lseek,        SYS_ioctl,       SYS_prlimit64, SYS_uname,
	SYS_sysinfo,    SYS_eventfd2,     SYS_getuid,      SYS_geteuid,   SYS_getgid,
	SYS_getegid,    SYS_rt_sigaction, SYS_sched_yield, SYS_statx,     SYS_sched_getaffinity,
	SYS_readlinkat, SYS_faccessat,    SYS_getdents64,
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_access
	SYS_access,
#endif
#ifdef SYS_readlink
	SYS_readlink,
#endif
#ifdef SYS_stat
	SYS_stat,
#endif
};
/* Threads, for the resolver. */
static const int DIALER[] = {
	SYS_connect, SYS_bind,   SYS_sendmmsg,        SYS_recvmmsg, SYS_clone3,
	SYS_clone,   SYS_statfs, SYS_set_robust_list, SYS_rseq,     SYS_clock_nanosleep,
};
/* No socket(2), no new process. */
static const int COMPANION[] = { SYS_readv, SYS_socketpair, SYS_pipe2 };

/* A companion with threads, an accepting socket, and a database. */
static const int CACHE[] = {
	SYS_accept4,         SYS_clone3,    SYS_clone,     SYS_set_robust_list, SYS_rseq,
	SYS_pwrite64,        SYS_ftruncate, SYS_fallocate, SYS_fsync,           SYS_fdatasync,
	SYS_unlinkat,        SYS_mkdirat,   SYS_fchmod,    SYS_fchown,          SYS_openat2,
	SYS_getcwd,          SYS_fstatfs,   SYS_statfs,    SYS_flock,           SYS_umask,
	SYS_clock_nanosleep, SYS_renameat2, SYS_msync,
#ifdef SYS_unlink
	SYS_unlink,
#endif
#ifdef SYS_mkdir
	SYS_mkdir,
#endif
#ifdef SYS_lstat
	SYS_lstat,
#endif
#ifdef SYS_nanosleep
	SYS_nanosleep,
#endif
};
static const int REDIS[] = { SYS_bind, SYS_sendmmsg, SYS_recvmmsg };

struct program {
	struct sock_filter f[PROGRAM_MAX];
	unsigned short n;
};

static void put(struct program *p, unsigned code, uint32_t k, unsigned jt, unsigned jf)
{
	if (p->n < PROGRAM_MAX)
		p->f[p->n++] = (struct sock_filter){ (uint16_t)code, (uint8_t)jt, (uint8_t)jf, k };
}

static void put_return(struct program *p, uint32_t action)
{
	put(p, BPF_RET | BPF_K, action, 0, 0);
}

static void put_allow(struct program *p, int nr)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1);
	put_return(p, SECCOMP_RET_ALLOW);
}

/* The call is allowed when argument `arg` has none of `bits`. The kernel takes these arguments as
 * 32 bits or refuses higher ones itself. */
static void put_unless_bits(struct program *p, int nr, unsigned arg, uint32_t bits)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4);
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)ARG_LOW(arg), 0, 0);
	put(p, BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0);
	put_return(p, SECCOMP_RET_ALLOW);
	put_return(p, SECCOMP_RET_ERRNO | EACCES);
}

/* As for the others, from NETPOL_CONNECTED_FROM on. */
static void put_connect(struct program *p)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 4);
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)ARG_LOW(0), 0, 0);
	put(p, BPF_JMP | BPF_JGE | BPF_K, NETPOL_CONNECTED_FROM, 0, 1);
	put_return(p, SECCOMP_RET_ERRNO | EINPROGRESS);
	put_return(p, SECCOMP_RET_ALLOW);
}

static void put_domains(struct program *p)
{
	static const int domains[] = { AF_INET, AF_INET6, AF_UNIX, AF_NETLINK };
	unsigned n = (unsigned)AQE_COUNT(domains);

	put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 2 * n + 2);
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)ARG_LOW(0), 0, 0);
	for (unsigned i = 0; i < n; i++)
		put_allow(p, domains[i]);
	put_return(p, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static void put_all(struct program *p, const int *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_allow(p, list[i]);
}

static void build(struct program *p, enum netpol_role role)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, arch), 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	put_return(p, SECCOMP_RET_KILL_PROCESS);
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)NR, 0, 0);
	put(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	put_return(p, SECCOMP_RET_KILL_PROCESS);
	put_all(p, BOTH, AQE_COUNT(BOTH));
	/* Each of these leaves only by returning, or not having touched the number. */
	put_unless_bits(p, SYS_mmap, 2, PROT_EXEC);
	put_unless_bits(p, SYS_mprotect, 2, PROT_EXEC);
	if (role != NETPOL_ROLE_WORKER)
		put_all(p, LIBRARIES, AQE_COUNT(LIBRARIES));
	switch (role) {
	case NETPOL_ROLE_WORKER:
		put_all(p, WORKER, AQE_COUNT(WORKER));
		break;
	case NETPOL_ROLE_DIALER:
		put_all(p, DIALER, AQE_COUNT(DIALER));
		put_domains(p);
		break;
	case NETPOL_ROLE_COMPANION:
		put_all(p, COMPANION, AQE_COUNT(COMPANION));
		/* Its sockets are connected when it gets them. libcurl 7.88 calls connect(2) all
		 * the same, although it is told so (CURL_SOCKOPT_ALREADY_CONNECTED), and this is
		 * the answer with which it goes on. */
		put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1);
		put_return(p, SECCOMP_RET_ERRNO | EINPROGRESS);
		break;
	case NETPOL_ROLE_CACHE:
		put_all(p, COMPANION, AQE_COUNT(COMPANION));
		put_all(p, CACHE, AQE_COUNT(CACHE));
		put_allow(p, SYS_openat);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1);
		put_return(p, SECCOMP_RET_ERRNO | EINPROGRESS);
		break;
	case NETPOL_ROLE_CACHE_REDIS:
		put_all(p, COMPANION, AQE_COUNT(COMPANION));
		put_all(p, CACHE, AQE_COUNT(CACHE));
		put_all(p, REDIS, AQE_COUNT(REDIS));
		put_allow(p, SYS_openat);
		put_connect(p);
		put_domains(p);
		break;
	}
	if (role != NETPOL_ROLE_WORKER)
		put_unless_bits(p, SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
	put_return(p, role == NETPOL_ROLE_WORKER ? SECCOMP_RET_KILL_PROCESS
						 : SECCOMP_RET_ERRNO | EPERM);
}

int netpol_seccomp_install(enum netpol_role role, struct aqe_err *e)
{
	struct program p = { .n = 0 };
	struct sock_fprog prog = { 0, p.f };

	build(&p, role);
	prog.len = p.n;
	if (p.n >= PROGRAM_MAX)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "the seccomp filter is too long");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "seccomp");
	return 0;
}
