/* SPDX-License-Identifier: MIT */
#include "netpolicy/idna.h"

#include <string.h>

#include "shim/core/text.h"

/* RFC 3492, section 5 */
#define BASE         36
#define TMIN         1
#define TMAX         26
#define SKEW         38
#define DAMP         700
#define BIAS         72
#define FIRST        0x80

#define UNICODE_LAST 0x10FFFF
#define ACE          "xn--"
#define ACE_LEN      4

/* ---- punycode ---- */

static uint32_t adapt(uint32_t delta, uint32_t count, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / DAMP : delta / 2;
	delta += delta / count;
	while (delta > (BASE - TMIN) * TMAX / 2) {
		delta /= BASE - TMIN;
		k += BASE;
	}
	return k + (BASE - TMIN + 1) * delta / (delta + SKEW);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
	if (k <= bias + TMIN)
		return TMIN;
	return k >= bias + TMAX ? TMAX : k - bias;
}

static int digit_value(char c)
{
	if (c >= 'a' && c <= 'z')
		return c - 'a';
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= '0' && c <= '9')
		return c - '0' + 26;
	return -1;
}

static char digit_char(uint32_t d)
{
	return (char)(d < 26 ? 'a' + d : '0' + (d - 26));
}

/* One generalised variable-length integer, added to *io_i. Returns bytes read, 0 on a fault. */
static size_t read_delta(const char *p, size_t n, uint32_t bias, uint32_t *io_i)
{
	uint64_t w = 1, i = *io_i;

	for (size_t at = 0; at < n; at++) {
		const int d = digit_value(p[at]);
		const uint32_t t = threshold((uint32_t)(at + 1) * BASE, bias);

		if (d < 0)
			return 0;
		i += (uint64_t)d * w;
		if (i > UINT32_MAX)
			return 0;
		if ((uint32_t)d < t) {
			*io_i = (uint32_t)i;
			return at + 1;
		}
		w *= BASE - t;
		if (w > UINT32_MAX)
			return 0;
	}
	return 0;
}

/* The plain characters in front of the last hyphen; returns where the rest begins. */
static size_t copy_basic(const char *p, size_t n, uint32_t *ret, size_t *ret_n)
{
	const char *hyphen = memrchr(p, '-', n);
	const size_t basic = hyphen ? (size_t)(hyphen - p) : 0;

	for (size_t i = 0; i < basic; i++)
		ret[i] = (unsigned char)p[i];
	*ret_n = basic;
	return basic ? basic + 1 : 0;
}

static bool is_scalar(uint32_t cp)
{
	return cp >= FIRST && cp <= UNICODE_LAST && (cp < 0xD800 || cp > 0xDFFF);
}

bool netpol_puny_decode(const char *p, size_t n, uint32_t ret[NETPOL_IDNA_MAX], size_t *ret_n)
{
	uint32_t cp = FIRST, i = 0, bias = BIAS;
	size_t at, len;

	if (n > NETPOL_IDNA_MAX)
		return false;
	at = copy_basic(p, n, ret, &len);
	while (at < n) {
		const uint32_t before = i;
		const size_t used = read_delta(p + at, n - at, bias, &i);

		if (!used || len == NETPOL_IDNA_MAX)
			return false;
		at += used;
		len++;
		bias = adapt(i - before, (uint32_t)len, before == 0);
		if (i / len > UNICODE_LAST)
			return false;
		cp += i / (uint32_t)len;
		i %= (uint32_t)len;
		if (!is_scalar(cp))
			return false;
		memmove(ret + i + 1, ret + i, (len - 1 - i) * sizeof(*ret));
		ret[i++] = cp;
	}
	*ret_n = len;
	return true;
}

struct encoder {
	char *out;
	size_t max, len;
	bool full;
	size_t basic, done; /* plain code points; those that are out already */
	uint32_t delta, bias;
};

static void put(struct encoder *enc, char c)
{
	if (enc->len == enc->max)
		enc->full = true;
	else
		enc->out[enc->len++] = c;
}

static void put_delta(struct encoder *enc, uint32_t delta, uint32_t bias)
{
	for (uint32_t k = BASE;; k += BASE) {
		const uint32_t t = threshold(k, bias);

		if (delta < t)
			break;
		put(enc, digit_char(t + (delta - t) % (BASE - t)));
		delta = (delta - t) / (BASE - t);
	}
	put(enc, digit_char(delta));
}

/* The smallest code point that is not below `from`; 0 when there is none. */
static uint32_t next_cp(const uint32_t *cp, size_t n, uint32_t from)
{
	uint32_t best = 0;

	for (size_t i = 0; i < n; i++) {
		if (cp[i] >= from && (!best || cp[i] < best))
			best = cp[i];
	}
	return best;
}

/* Encodes every appearance of `m`. Labels are short, so `delta` cannot overflow: at most
 * 64 * 0x110000. */
static void put_round(struct encoder *enc, const uint32_t *cp, size_t n, uint32_t m)
{
	for (size_t i = 0; i < n; i++) {
		if (cp[i] < m)
			enc->delta++;
		if (cp[i] != m)
			continue;
		put_delta(enc, enc->delta, enc->bias);
		enc->bias = adapt(enc->delta, (uint32_t)enc->done + 1, enc->done == enc->basic);
		enc->delta = 0;
		enc->done++;
	}
	enc->delta++;
}

bool netpol_puny_encode(const uint32_t *cp, size_t n, char *ret, size_t max, size_t *ret_n)
{
	struct encoder enc = { .out = ret, .max = max, .bias = BIAS };
	uint32_t from = FIRST;

	if (n > NETPOL_IDNA_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (cp[i] < FIRST)
			put(&enc, (char)cp[i]);
	}
	enc.basic = enc.done = enc.len;
	if (enc.basic)
		put(&enc, '-');
	while (enc.done < n && !enc.full) {
		const uint32_t m = next_cp(cp, n, from);

		enc.delta += (m - from) * (uint32_t)(enc.done + 1);
		put_round(&enc, cp, n, m);
		from = m + 1;
	}
	*ret_n = enc.len;
	return !enc.full;
}

/* ---- letters ---- */

/* Upper case letters and how far their lower case is; step 2: every other code point. */
static const struct {
	uint16_t first, last;
	uint8_t step;
	int8_t by;
} UPPER[] = {
	{ 0x00C0, 0x00D6, 1, 32 },   { 0x00D8, 0x00DE, 1, 32 }, { 0x0100, 0x012E, 2, 1 },
	{ 0x0132, 0x0136, 2, 1 },    { 0x0139, 0x0147, 2, 1 },  { 0x014A, 0x0176, 2, 1 },
	{ 0x0178, 0x0178, 1, -121 }, { 0x0179, 0x017D, 2, 1 },  { 0x01A0, 0x01A0, 1, 1 },
	{ 0x01AF, 0x01AF, 1, 1 },    { 0x0218, 0x021A, 2, 1 },  { 0x0386, 0x0386, 1, 38 },
	{ 0x0388, 0x038A, 1, 37 },   { 0x038C, 0x038C, 1, 64 }, { 0x038E, 0x038F, 1, 63 },
	{ 0x0391, 0x03A1, 1, 32 },   { 0x03A3, 0x03AB, 1, 32 }, { 0x0400, 0x040F, 1, 80 },
	{ 0x0410, 0x042F, 1, 32 },   { 0x0460, 0x0480, 2, 1 },  { 0x048A, 0x04BE, 2, 1 },
	{ 0x04C0, 0x04C0, 1, 15 },   { 0x04C1, 0x04CD, 2, 1 },  { 0x04D0, 0x052E, 2, 1 },
	{ 0x0531, 0x0556, 1, 48 },   { 0x1E00, 0x1E94, 2, 1 },  { 0x1EA0, 0x1EFE, 2, 1 },
};

/* Letters, marks and digits of scripts in wide use that RFC 5892 lets stand in a label as they are,
 * by whole runs. Anything else can be written as its A-label. */
static const struct {
	uint32_t first, last;
} LETTERS[] = {
	{ 0x00DF, 0x00F6 }, { 0x00F8, 0x012F },   { 0x0131, 0x0131 }, { 0x0134, 0x013E },
	{ 0x0141, 0x0148 }, { 0x014A, 0x017E },   { 0x01A1, 0x01A1 }, { 0x01B0, 0x01B0 },
	{ 0x0219, 0x021B }, { 0x0390, 0x0390 },   { 0x03AC, 0x03CE }, { 0x0430, 0x0481 },
	{ 0x048B, 0x052F }, { 0x0561, 0x0586 },   { 0x05D0, 0x05EA }, { 0x0620, 0x063F },
	{ 0x0641, 0x0657 }, { 0x0671, 0x0674 },   { 0x0679, 0x06D3 }, { 0x0900, 0x0957 },
	{ 0x0966, 0x096F }, { 0x0981, 0x09D7 },   { 0x09E6, 0x09F1 }, { 0x0A81, 0x0AEF },
	{ 0x0B82, 0x0BEF }, { 0x0C00, 0x0C6F },   { 0x0C80, 0x0CEF }, { 0x0D00, 0x0D6F },
	{ 0x0D82, 0x0DF3 }, { 0x0E01, 0x0E32 },   { 0x0E34, 0x0E3A }, { 0x0E40, 0x0E4E },
	{ 0x0E50, 0x0E59 }, { 0x10D0, 0x10FA },   { 0x1E01, 0x1E99 }, { 0x1EA1, 0x1EFF },
	{ 0x3005, 0x3007 }, { 0x3041, 0x3096 },   { 0x309D, 0x309E }, { 0x30A1, 0x30FA },
	{ 0x30FC, 0x30FE }, { 0x3105, 0x312F },   { 0x3400, 0x4DBF }, { 0x4E00, 0x9FFF },
	{ 0xAC00, 0xD7A3 }, { 0x20000, 0x2A6DF },
};

static uint32_t to_lower(uint32_t cp)
{
	if (cp >= 'A' && cp <= 'Z')
		return cp + 32;
	for (size_t i = 0; i < AQE_COUNT(UPPER); i++) {
		if (cp >= UPPER[i].first && cp <= UPPER[i].last &&
		    (cp - UPPER[i].first) % UPPER[i].step == 0)
			return (uint32_t)((int32_t)cp + UPPER[i].by);
	}
	return cp;
}

static bool is_letter(uint32_t cp)
{
	for (size_t i = 0; i < AQE_COUNT(LETTERS); i++) {
		if (cp >= LETTERS[i].first && cp <= LETTERS[i].last)
			return true;
	}
	return false;
}

/* RFC 5892, appendix A.1 and A.2, in part: a joiner after a virama, and a non-joiner between two
 * Arabic letters. Elsewhere they are invisible and make look-alikes. */
#define ZWNJ 0x200C
#define ZWJ  0x200D

static bool is_virama(uint32_t cp)
{
	static const uint16_t viramas[] = { 0x094D, 0x09CD, 0x0A4D, 0x0ACD, 0x0B4D,
					    0x0BCD, 0x0C4D, 0x0CCD, 0x0D4D, 0x0DCA };

	for (size_t i = 0; i < AQE_COUNT(viramas); i++) {
		if (viramas[i] == cp)
			return true;
	}
	return false;
}

static bool is_arabic(uint32_t cp)
{
	return cp >= 0x0620 && cp <= 0x06D3;
}

/* ---- labels ---- */

/* True when every joiner in the label stands where it has a meaning. */
static bool joiners_ok(const uint32_t *cp, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint32_t before = i ? cp[i - 1] : 0, after = i + 1 < n ? cp[i + 1] : 0;

		if (cp[i] != ZWJ && cp[i] != ZWNJ)
			continue;
		if (!is_virama(before) && !(cp[i] == ZWNJ && is_arabic(before) && is_arabic(after)))
			return false;
	}
	return true;
}

/* The character at `p`, `len` bytes as aqe_utf8_len() counted them. */
static uint32_t decode_utf8(const char *p, size_t len)
{
	static const uint8_t lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t cp = (unsigned char)p[0] & lead[len];

	for (size_t i = 1; i < len; i++)
		cp = cp << 6 | ((unsigned char)p[i] & 0x3f);
	return cp;
}

static bool is_ace(const char *s)
{
	return strncmp(s, ACE, ACE_LEN) == 0;
}

/* RFC 5890 2.3.2.1: an A-label is what its U-label encodes to. `s` is in lower case. */
static bool ace_ok(const char *s)
{
	uint32_t cp[NETPOL_IDNA_MAX];
	char again[NETPOL_IDNA_MAX];
	size_t n = 0, len = 0;
	bool wide = false;

	if (!netpol_puny_decode(s + ACE_LEN, strlen(s + ACE_LEN), cp, &n) ||
	    !netpol_puny_encode(cp, n, again, sizeof(again), &len))
		return false;
	for (size_t i = 0; i < n; i++) {
		wide |= cp[i] >= FIRST;
		if (to_lower(cp[i]) != cp[i])
			return false;
	}
	return wide && len == strlen(s + ACE_LEN) && memcmp(again, s + ACE_LEN, len) == 0;
}

/* Lower case code points of a label; *ret_wide tells whether there is one beyond ASCII. */
static const char *read_label(const char *p, size_t n, uint32_t *cp, size_t *ret_n, bool *ret_wide)
{
	size_t used = 0;

	*ret_wide = false;
	for (size_t at = 0; at < n;) {
		const size_t len = aqe_utf8_len(p + at, n - at);

		if (!len)
			return "not UTF-8";
		if (used == NETPOL_IDNA_MAX)
			return "label over 63 bytes";
		cp[used] = to_lower(decode_utf8(p + at, len));
		if (!cp[used])
			return "holds a NUL";
		if (cp[used] >= FIRST && !is_letter(cp[used]) && cp[used] != ZWJ &&
		    cp[used] != ZWNJ)
			return "holds a character that is not converted here; write its A-label "
			       "(xn--...)";
		*ret_wide |= cp[used++] >= FIRST;
		at += len;
	}
	*ret_n = used;
	return joiners_ok(cp, used) ? NULL : "holds an invisible joiner where it has no meaning";
}

static const char *convert(const char *p, size_t n, char *ret)
{
	uint32_t cp[NETPOL_IDNA_MAX] = { 0 };
	size_t n_cp = 0, len = 0;
	bool wide = false;
	const char *why = read_label(p, n, cp, &n_cp, &wide);

	if (why)
		return why;
	if (!wide) {
		for (size_t i = 0; i < n_cp; i++)
			ret[i] = (char)cp[i];
		ret[n_cp] = '\0';
		return is_ace(ret) && !ace_ok(ret) ? "holds an A-label that no name encodes to"
						   : NULL;
	}
	if (cp[0] == '-' || cp[n_cp - 1] == '-' || (n_cp > 3 && cp[2] == '-' && cp[3] == '-'))
		return "label begins or ends with a hyphen, or has two in places 3 and 4";
	memcpy(ret, ACE, ACE_LEN);
	if (!netpol_puny_encode(cp, n_cp, ret + ACE_LEN, NETPOL_IDNA_MAX - ACE_LEN, &len))
		return "label over 63 bytes";
	ret[ACE_LEN + len] = '\0';
	return NULL;
}

bool netpol_idna_label(const char *p, size_t n, char ret[NETPOL_IDNA_MAX + 1], const char **ret_why)
{
	const char *why = convert(p, n, ret);

	if (ret_why)
		*ret_why = why;
	return !why;
}
