/* SPDX-License-Identifier: MIT */
#include "netpolicy/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "shim/core/text.h"

#define V4_PARTS   4
#define V6_GROUPS  8
#define V4_BITS    32
#define V6_BITS    128
#define CIDR_SHOWN 64

const char *netpol_class_name(enum netpol_class c)
{
	static const char *const names[NETPOL_CLASS_COUNT] = {
		[NETPOL_CLASS_PUBLIC] = "public",
		[NETPOL_CLASS_PRIVATE] = "private",
		[NETPOL_CLASS_LOOPBACK] = "loopback",
		[NETPOL_CLASS_LINKLOCAL] = "linklocal",
		[NETPOL_CLASS_MULTICAST] = "multicast",
		[NETPOL_CLASS_UNSPECIFIED] = "unspecified",
		[NETPOL_CLASS_BROADCAST] = "broadcast",
		[NETPOL_CLASS_CGNAT] = "cgnat",
		[NETPOL_CLASS_DOCUMENTATION] = "documentation",
		[NETPOL_CLASS_BENCHMARK] = "benchmark",
		[NETPOL_CLASS_RESERVED] = "reserved",
		[NETPOL_CLASS_METADATA] = "metadata",
		[NETPOL_CLASS_TRANSLATION] = "translation",
		[NETPOL_CLASS_INVALID] = "invalid",
	};

	return (unsigned)c < NETPOL_CLASS_COUNT ? names[c] : "invalid";
}

/* ---- text ---- */

/* One decimal part: 0 to 255, no leading zero. Returns its length, 0 when it is none. */
static size_t parse_part(const char *p, size_t n, uint8_t *ret)
{
	unsigned v = 0;
	size_t i = 0;

	while (i < n && i < 3 && p[i] >= '0' && p[i] <= '9')
		v = v * 10 + (unsigned)(p[i++] - '0');
	if (!i || v > UINT8_MAX || (i > 1 && p[0] == '0'))
		return 0;
	*ret = (uint8_t)v;
	return i;
}

static bool parse_v4(const char *p, size_t n, uint8_t ret[V4_PARTS])
{
	size_t at = 0;

	for (size_t part = 0; part < V4_PARTS; part++) {
		size_t len;

		if (part && (at == n || p[at++] != '.'))
			return false;
		len = parse_part(p + at, n - at, &ret[part]);
		if (!len)
			return false;
		at += len;
	}
	return at == n;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One to four hexadecimal digits; returns their number. */
static size_t parse_group(const char *p, size_t n, unsigned *ret)
{
	unsigned v = 0;
	size_t i = 0;

	for (; i < n && i < 4 && hex_value(p[i]) >= 0; i++)
		v = v << 4 | (unsigned)hex_value(p[i]);
	*ret = v;
	return i;
}

/* The groups of an IPv6 address as they are read. */
struct groups {
	uint8_t b[16];
	size_t used; /* bytes in b */
	size_t gap;  /* where "::" stood, in bytes; SIZE_MAX: nowhere */
};

static bool add_group(struct groups *g, const char *p, size_t n, size_t *io_at)
{
	unsigned v = 0;
	size_t len = parse_group(p + *io_at, n - *io_at, &v);

	if (!len || g->used + 2 > sizeof(g->b))
		return false;
	if (*io_at + len < n && p[*io_at + len] == '.') {
		/* the rest is a dotted quad */
		if (g->used + V4_PARTS > sizeof(g->b) ||
		    !parse_v4(p + *io_at, n - *io_at, g->b + g->used))
			return false;
		g->used += V4_PARTS;
		*io_at = n;
		return true;
	}
	g->b[g->used++] = (uint8_t)(v >> 8);
	g->b[g->used++] = (uint8_t)v;
	*io_at += len;
	return true;
}

static bool read_groups(struct groups *g, const char *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		if (n - at >= 2 && p[at] == ':' && p[at + 1] == ':') {
			if (g->gap != SIZE_MAX)
				return false;
			g->gap = g->used;
			at += 2;
			if (at == n)
				break;
		} else if (at) {
			if (p[at] != ':')
				return false;
			at++;
		}
		if (!add_group(g, p, n, &at))
			return false;
	}
	/* "::" stands for at least one group */
	return g->gap == SIZE_MAX ? g->used == sizeof(g->b) : g->used <= sizeof(g->b) - 2;
}

static bool parse_v6(const char *p, size_t n, uint8_t ret[16])
{
	struct groups g = { { 0 }, 0, SIZE_MAX };
	size_t tail;

	if (!read_groups(&g, p, n))
		return false;
	memset(ret, 0, sizeof(g.b));
	if (g.gap == SIZE_MAX) {
		memcpy(ret, g.b, sizeof(g.b));
		return true;
	}
	tail = g.used - g.gap;
	memcpy(ret, g.b, g.gap);
	memcpy(ret + sizeof(g.b) - tail, g.b + g.gap, tail);
	return true;
}

bool netpol_addr_parse(const char *p, size_t n, struct netpol_addr *ret)
{
	struct netpol_addr a = { .v6 = false };

	if (n >= NETPOL_ADDR_TEXT)
		return false;
	if (!parse_v4(p, n, a.b)) {
		memset(a.b, 0, sizeof(a.b));
		a.v6 = true;
		if (!parse_v6(p, n, a.b))
			return false;
	}
	*ret = a;
	return true;
}

bool netpol_addr_from_sockaddr(const struct sockaddr *sa, struct netpol_addr *ret)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct netpol_addr a = { .v6 = sa->sa_family == AF_INET6 };

	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		memcpy(a.b, &in.sin_addr, V4_PARTS);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		memcpy(a.b, &in6.sin6_addr, sizeof(a.b));
	} else {
		return false;
	}
	*ret = a;
	return true;
}

void netpol_addr_format(const struct netpol_addr *a, char ret[NETPOL_ADDR_TEXT])
{
	_Static_assert(NETPOL_ADDR_TEXT >= INET6_ADDRSTRLEN, "room for any address");

	if (!inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->b, ret, NETPOL_ADDR_TEXT))
		ret[0] = '\0'; /* cannot be: family and room are right */
}

bool netpol_addr_eq(const struct netpol_addr *a, const struct netpol_addr *b)
{
	return a->v6 == b->v6 && memcmp(a->b, b->b, a->v6 ? sizeof(a->b) : V4_PARTS) == 0;
}

/* ---- classes ---- */

struct block {
	uint8_t b[16];
	uint8_t bits;
	uint8_t class; /* enum netpol_class */
};

static bool prefix_eq(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	const unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return !rest || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

/* Narrower blocks stand before those they are in. Sources: IANA's special-purpose registries; the
 * metadata services' own documentation. What no row covers is public. */
static const struct block BLOCKS_V4[] = {
	{ { 169, 254, 169, 254 }, 32, NETPOL_CLASS_METADATA }, /* AWS, GCP, Azure, OpenStack, ... */
	{ { 169, 254, 170, 2 }, 32, NETPOL_CLASS_METADATA },   /* AWS ECS tasks */
	{ { 169, 254, 170, 23 }, 32, NETPOL_CLASS_METADATA },  /* AWS EKS pod identity */
	{ { 169, 254, 42, 42 }, 32, NETPOL_CLASS_METADATA },   /* Scaleway */
	{ { 169, 254, 0, 23 }, 32, NETPOL_CLASS_METADATA },    /* Tencent Cloud */
	{ { 100, 100, 100, 200 }, 32, NETPOL_CLASS_METADATA }, /* Alibaba Cloud */
	{ { 168, 63, 129, 16 }, 32, NETPOL_CLASS_METADATA },   /* Azure WireServer */
	{ { 192, 0, 0, 192 }, 32, NETPOL_CLASS_METADATA },     /* OCI Classic */
	{ { 255, 255, 255, 255 }, 32, NETPOL_CLASS_BROADCAST },
	{ { 0 }, 8, NETPOL_CLASS_UNSPECIFIED }, /* connect(2) takes 0.0.0.0 for this host */
	{ { 10 }, 8, NETPOL_CLASS_PRIVATE },
	{ { 100, 64 }, 10, NETPOL_CLASS_CGNAT },
	{ { 127 }, 8, NETPOL_CLASS_LOOPBACK },
	{ { 169, 254 }, 16, NETPOL_CLASS_LINKLOCAL },
	{ { 172, 16 }, 12, NETPOL_CLASS_PRIVATE },
	{ { 192, 0, 0 }, 24, NETPOL_CLASS_RESERVED },
	{ { 192, 0, 2 }, 24, NETPOL_CLASS_DOCUMENTATION },
	{ { 192, 88, 99 }, 24, NETPOL_CLASS_RESERVED }, /* 6to4 relays, RFC 7526 */
	{ { 192, 168 }, 16, NETPOL_CLASS_PRIVATE },
	{ { 198, 18 }, 15, NETPOL_CLASS_BENCHMARK },
	{ { 198, 51, 100 }, 24, NETPOL_CLASS_DOCUMENTATION },
	{ { 203, 0, 113 }, 24, NETPOL_CLASS_DOCUMENTATION },
	{ { 224 }, 4, NETPOL_CLASS_MULTICAST },
	{ { 240 }, 4, NETPOL_CLASS_RESERVED },
};

/* Blocks that hold an IPv4 address are looked at before. */
static const struct block BLOCKS_V6[] = {
	{ { 0 }, 128, NETPOL_CLASS_UNSPECIFIED },
	{ { [15] = 1 }, 128, NETPOL_CLASS_LOOPBACK },
	{ { 0 }, 96, NETPOL_CLASS_TRANSLATION },                /* IPv4-compatible */
	{ { [8] = 0xff, 0xff }, 96, NETPOL_CLASS_TRANSLATION }, /* IPv4-translated, RFC 2765 */
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 }, 48, NETPOL_CLASS_TRANSLATION },            /* RFC 8215 */
	{ { 0xfd, 0, 0x0e, 0xc2 }, 32, NETPOL_CLASS_METADATA },                     /* AWS */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54 }, 128, NETPOL_CLASS_METADATA }, /* GCP */
	{ { 0xfd, 0, 0, 0x42, [15] = 0x42 }, 128, NETPOL_CLASS_METADATA },          /* Scaleway */
	{ { 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, NETPOL_CLASS_METADATA },
	{ { 0xfe, 0x80 }, 10, NETPOL_CLASS_LINKLOCAL },
	{ { 0xfc }, 7, NETPOL_CLASS_PRIVATE },
	{ { 0xff }, 8, NETPOL_CLASS_MULTICAST },
	{ { 0x20, 0x01, 0, 0 }, 32, NETPOL_CLASS_TRANSLATION }, /* Teredo */
	{ { 0x20, 0x01, 0, 2 }, 48, NETPOL_CLASS_BENCHMARK },
	{ { 0x20, 0x01 }, 23, NETPOL_CLASS_RESERVED }, /* IETF protocols */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, NETPOL_CLASS_DOCUMENTATION },
	{ { 0x20, 0x02 }, 16, NETPOL_CLASS_TRANSLATION },   /* 6to4 */
	{ { 0x3f, 0xff }, 20, NETPOL_CLASS_DOCUMENTATION }, /* RFC 9637 */
	{ { 0x20 }, 3, NETPOL_CLASS_PUBLIC },
};

/* IPv6 forms that the kernel or a translator turns into exactly one IPv4 address. */
static const struct block HOLDS_V4[] = {
	{ { [10] = 0xff, 0xff }, 96, 0 },   /* IPv4-mapped */
	{ { 0, 0x64, 0xff, 0x9b }, 96, 0 }, /* NAT64, RFC 6052 */
};

static const struct block *find_block(const struct block *rows, size_t n, const uint8_t *b)
{
	for (size_t i = 0; i < n; i++) {
		if (prefix_eq(rows[i].b, b, rows[i].bits))
			return &rows[i];
	}
	return NULL;
}

/* The address that traffic to `a` ends at: `a`, or the IPv4 address in it. */
static struct netpol_addr unwrap(const struct netpol_addr *a)
{
	struct netpol_addr in = { .v6 = false };

	if (!a->v6 || !find_block(HOLDS_V4, AQE_COUNT(HOLDS_V4), a->b))
		return *a;
	memcpy(in.b, a->b + 12, V4_PARTS);
	return in;
}

/* RFC 5214: an interface id 0000:5efe or 0200:5efe and an IPv4 address. */
static bool is_isatap(const struct netpol_addr *a)
{
	return a->v6 && (a->b[8] & 0xfd) == 0 && a->b[9] == 0 && a->b[10] == 0x5e &&
	       a->b[11] == 0xfe;
}

enum netpol_class netpol_addr_class(const struct netpol_addr *a)
{
	const struct netpol_addr in = unwrap(a);
	const struct block *row;

	if (!in.v6) {
		row = find_block(BLOCKS_V4, AQE_COUNT(BLOCKS_V4), in.b);
		return row ? (enum netpol_class)row->class : NETPOL_CLASS_PUBLIC;
	}
	row = find_block(BLOCKS_V6, AQE_COUNT(BLOCKS_V6), in.b);
	if (!row)
		return NETPOL_CLASS_RESERVED; /* outside 2000::/3 nothing is assigned */
	if (row->class == NETPOL_CLASS_PUBLIC && is_isatap(&in))
		return NETPOL_CLASS_TRANSLATION;
	return (enum netpol_class)row->class;
}

/* ---- prefixes ---- */

/* What a policy may open. */
static const struct netpol_cidr OPENABLE[] = {
	{ { false, { 10 } }, 8 },
	{ { false, { 172, 16 } }, 12 },
	{ { false, { 192, 168 } }, 16 },
	{ { false, { 100, 64 } }, 10 },
	{ { false, { 198, 18 } }, 15 },
	{ { true, { 0xfc } }, 7 },
	{ { true, { 0x20, 0x01, 0, 2 } }, 48 },
};

bool netpol_cidr_has(const struct netpol_cidr *c, const struct netpol_addr *a)
{
	return c->base.v6 == a->v6 && prefix_eq(c->base.b, a->b, c->bits);
}

static bool lower_bits_zero(const struct netpol_cidr *c)
{
	const unsigned max = c->base.v6 ? V6_BITS : V4_BITS;

	for (unsigned bit = c->bits; bit < max; bit++) {
		if (c->base.b[bit / 8] & (0x80U >> (bit % 8)))
			return false;
	}
	return true;
}

static bool is_openable(const struct netpol_cidr *c)
{
	for (size_t i = 0; i < AQE_COUNT(OPENABLE); i++) {
		if (c->bits >= OPENABLE[i].bits && netpol_cidr_has(&OPENABLE[i], &c->base))
			return true;
	}
	return false;
}

int netpol_cidr_parse(const char *text, struct netpol_cidr *ret, struct aqe_err *e)
{
	const char *slash = strchr(text, '/');
	struct netpol_cidr c;
	uint64_t bits = 0;

	if (!slash || !netpol_addr_parse(text, (size_t)(slash - text), &c.base) ||
	    !aqe_parse_u64(slash + 1, c.base.v6 ? V6_BITS : V4_BITS, &bits))
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "'%.*s' is no prefix such as 10.1.0.0/16 or fd00::/8",
				   CIDR_SHOWN, text);
	c.bits = (uint8_t)bits;
	if (!lower_bits_zero(&c))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%.*s' has bits below its prefix",
				   CIDR_SHOWN, text);
	if (!is_openable(&c))
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "'%.*s' is not inside a private network (10.0.0.0/8, "
				   "172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 198.18.0.0/15, "
				   "fc00::/7): nothing else can be opened",
				   CIDR_SHOWN, text);
	*ret = c;
	return AQE_OK;
}

/* ---- the vet ---- */

static bool may_open(enum netpol_class c)
{
	return c == NETPOL_CLASS_PRIVATE || c == NETPOL_CLASS_CGNAT || c == NETPOL_CLASS_BENCHMARK;
}

bool netpol_addr_allowed(const struct netpol_vet *v, const struct netpol_addr *a,
			 enum netpol_class *ret_class)
{
	const struct netpol_addr in = unwrap(a);
	const enum netpol_class class = netpol_addr_class(a);

	if (ret_class)
		*ret_class = class;
	for (size_t i = 0; i < v->n_own; i++) {
		const struct netpol_addr own = unwrap(&v->own[i]);

		if (netpol_addr_eq(&own, &in))
			return false;
	}
	if (class == NETPOL_CLASS_PUBLIC)
		return true;
	if (!may_open(class) || is_isatap(&in))
		return false;
	for (size_t i = 0; i < v->n_allow; i++) {
		if (netpol_cidr_has(&v->allow[i], &in))
			return true;
	}
	return false;
}
