/* SPDX-License-Identifier: MIT */
#include "netpolicy/cluster.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ELEMENTS_MAX 8
#define WORDS_MAX    12
#define SHA_LEN      40
#define SHOWN_MAX    100 /* of what a server says in an error */

/* limiter.c in Lua, with microseconds for nanoseconds: a token is 60,000,000 units of debt, which
 * falls by perMinute units a microsecond. All numbers stay below 2^53, where doubles are exact.
 * Hash: at (last time seen), debt, shift (of our time from the server's), the limits it was last
 * asked under, cap (entries of the list). List: times of admissions, never falling. */
static const char SCRIPT[] =
	"local S,L=KEYS[1],KEYS[2]\n"
	"local rpm,rph,burst=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3])\n"
	"local latest,now=tonumber(ARGV[5]),tonumber(ARGV[6])\n"
	"local MIN,HOUR=60000000,3600000000\n"
	"if now==0 then local t=redis.call('TIME') now=t[1]*1000000+t[2] end\n"
	"local h=redis.call('HMGET',S,'at','debt','shift','rpm','rph','burst','cap')\n"
	"local fresh=not h[1]\n"
	"local raw=now\n"
	"local debt,shift=tonumber(h[2] or 0),tonumber(h[3] or 0)\n"
	"local cap=math.max(tonumber(h[7] or 0),rph)\n"
	"now=now+shift\n"
	"local at=tonumber(h[1] or now)\n"
	"if latest>0 and now>latest then now=latest end\n"
	"if now<at and not fresh then now=at end\n"
	"local write=now~=raw+shift\n"
	"shift=now-raw\n"
	"local function fall(from,us,rate)\n"
	" local p=us*rate if p>=from then return 0 end return from-p end\n"
	"if fresh then\n"
	" if ARGV[4]=='1' then\n"
	"  local ok,info=pcall(redis.call,'INFO','server')\n"
	"  local up=ok and tonumber(string.match(info,'uptime_in_seconds:(%d+)')) or 0\n"
	"  if up<3600 then\n"
	"   local n,list=math.min(rpm,rph),{}\n"
	"   for i=1,n do list[#list+1]=now-up*1000000\n"
	"    if #list==1000 or i==n then redis.call('RPUSH',L,unpack(list)) list={} end\n"
	"   end\n"
	"   debt=fall(burst*MIN,up*1000000,rpm)\n"
	"   write=true\n"
	"  end\n"
	" end\n"
	"else\n"
	" debt=fall(debt,now-at,tonumber(h[4]))\n"
	" if h[4]~=ARGV[1] or h[5]~=ARGV[2] or h[6]~=ARGV[3] then\n"
	"  debt=math.max(0,burst*MIN+debt-tonumber(h[6])*MIN)\n"
	"  write=true\n"
	" end\n"
	"end\n"
	"local n,wait=redis.call('LLEN',L),0\n"
	"if debt>(burst-1)*MIN then wait=math.ceil((debt-(burst-1)*MIN)/rpm) end\n"
	"local function window(max,len)\n"
	" if n<max then return end\n"
	" local left=len-(now-tonumber(redis.call('LINDEX',L,-max)))\n"
	" if left>wait then wait=left end\n"
	"end\n"
	"if rpm<=rph then window(rpm,MIN) end\n"
	"window(rph,HOUR)\n"
	"if wait==0 then\n"
	" redis.call('RPUSH',L,string.format('%.0f',now))\n"
	" if n+1>cap then redis.call('LTRIM',L,-cap,-1) end\n"
	" debt=debt+MIN\n"
	" write=true\n"
	"end\n"
	"if write then\n"
	" redis.call('HSET',S,'at',string.format('%.0f',now),'debt',string.format('%.0f',debt),\n"
	"  'shift',string.format('%.0f',shift),'rpm',ARGV[1],'rph',ARGV[2],'burst',ARGV[3],\n"
	"  'cap',string.format('%.0f',cap))\n"
	" local ttl=string.format('%.0f',math.ceil(math.max(HOUR,debt/rpm)/1000)+60000)\n"
	" redis.call('PEXPIRE',S,ttl)\n"
	" redis.call('PEXPIRE',L,ttl)\n"
	"end\n"
	"return {wait==0 and 1 or 0,wait,now}\n";

/* Replies that are due, in order. */
enum step { STEP_AUTH, STEP_SELECT, STEP_LOAD, STEP_READY };

struct netpol_cluster {
	struct netpol_cluster_opts o;
	char keys[2][NETPOL_CLUSTER_KEY_MAX];
	char sha[SHA_LEN + 1];
	redisReader *reader;
	redisReplyObjectFunctions make;  /* hiredis' own, but for arrays */
	redisReplyObjectFunctions plain; /* hiredis' own */
	enum step step;
	size_t held;               /* bytes fed since the last whole reply */
	int64_t latest_us, now_us; /* of the last question */
	bool resent;
};

/* ---- words ---- */

static int say(struct aqe_buf *out, size_t n, const char *const *words, struct aqe_err *e)
{
	const char *list[WORDS_MAX];
	size_t lengths[WORDS_MAX];
	char *text = NULL;
	int len;

	for (size_t i = 0; i < n; i++) {
		list[i] = words[i];
		lengths[i] = strlen(words[i]);
	}
	len = redisFormatCommandArgv(&text, (int)n, list, lengths);
	if (len < 0)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	(void)aqe_buf_add(out, text, (size_t)len);
	explicit_bzero(text, (size_t)len); /* it may be the password */
	redisFreeCommand(text);
	return aqe_buf_ok(out, e);
}

static int ask(struct netpol_cluster *c, const char *verb, const char *script, struct aqe_buf *out,
	       struct aqe_err *e)
{
	char rate[3][16], latest[24], now[24];

	(void)snprintf(rate[0], sizeof(rate[0]), "%" PRIu32, c->o.rate.per_minute);
	(void)snprintf(rate[1], sizeof(rate[1]), "%" PRIu32, c->o.rate.per_hour);
	(void)snprintf(rate[2], sizeof(rate[2]), "%" PRIu32, c->o.rate.burst);
	(void)snprintf(latest, sizeof(latest), "%" PRId64, c->latest_us);
	(void)snprintf(now, sizeof(now), "%" PRId64, c->now_us);
	return say(out, 11,
		   (const char *const[]){ verb, script, "2", c->keys[0], c->keys[1], rate[0],
					  rate[1], rate[2], c->o.strict ? "1" : "0", latest, now },
		   e);
}

int netpol_cluster_ask(struct netpol_cluster *c, int64_t latest_us, int64_t now_us,
		       struct aqe_buf *out, struct aqe_err *e)
{
	if (c->step != STEP_READY)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "asked before the greeting");
	c->latest_us = latest_us;
	c->now_us = now_us;
	c->resent = false;
	return ask(c, "EVALSHA", c->sha, out, e);
}

void netpol_cluster_rate(struct netpol_cluster *c, const struct netpol_rate *rate)
{
	c->o.rate = *rate;
}

/* ---- the object ---- */

/* hiredis 0.14 allocates whatever length an array claims to have. */
static void *small_array(const redisReadTask *task, int n)
{
	const struct netpol_cluster *c = task->privdata;

	return n >= 0 && n <= ELEMENTS_MAX ? c->plain.createArray(task, n) : NULL;
}

static int new_reader(struct netpol_cluster *c, struct aqe_err *e)
{
	if (c->reader)
		redisReaderFree(c->reader);
	c->reader = redisReaderCreate();
	c->held = 0;
	if (!c->reader)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	c->plain = *c->reader->fn;
	c->make = c->plain;
	c->make.createArray = small_array;
	c->reader->fn = &c->make;
	c->reader->privdata = c;
	return 0;
}

int netpol_cluster_new(const struct netpol_cluster_opts *o, struct netpol_cluster **ret,
		       struct aqe_err *e)
{
	struct netpol_cluster *c = calloc(1, sizeof(*c));
	int rc = 0;

	if (!c)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	c->o = *o;
	for (size_t i = 0; i < 2; i++) {
		/* the braces put both on the same node of a Redis cluster */
		int n = snprintf(c->keys[i], sizeof(c->keys[i]), "%s{%s}:%c", o->prefix, o->key,
				 i ? 'a' : 's');

		if (n < 0 || (size_t)n >= sizeof(c->keys[i]))
			rc = aqe_err_set(e, AQE_E_LIMIT, 0, "key of the shared limiter too long");
	}
	if (rc) {
		free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void netpol_cluster_free(struct netpol_cluster *c)
{
	if (!c)
		return;
	if (c->reader)
		redisReaderFree(c->reader);
	free(c);
}

static enum step after(const struct netpol_cluster *c, enum step s)
{
	if (s == STEP_AUTH && c->o.db > 0)
		return STEP_SELECT;
	return s == STEP_LOAD ? STEP_READY : STEP_LOAD;
}

int netpol_cluster_hello(struct netpol_cluster *c, struct aqe_buf *out, struct aqe_err *e)
{
	const struct netpol_cluster_opts *o = &c->o;
	char db[16];
	int rc = new_reader(c, e);

	(void)snprintf(db, sizeof(db), "%u", o->db);
	c->step = o->password ? STEP_AUTH : o->db > 0 ? STEP_SELECT : STEP_LOAD;
	if (!rc && o->password && o->username)
		rc = say(out, 3, (const char *const[]){ "AUTH", o->username, o->password }, e);
	else if (!rc && o->password)
		rc = say(out, 2, (const char *const[]){ "AUTH", o->password }, e);
	if (!rc && o->db > 0)
		rc = say(out, 2, (const char *const[]){ "SELECT", db }, e);
	return rc ? rc : say(out, 3, (const char *const[]){ "SCRIPT", "LOAD", SCRIPT }, e);
}

/* ---- replies ---- */

int netpol_cluster_feed(struct netpol_cluster *c, const void *p, size_t n, struct aqe_err *e)
{
	if (!c->reader)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "bytes before the greeting");
	c->held += n;
	if (c->held > NETPOL_CLUSTER_REPLY_MAX)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "a reply of more than %d bytes",
				   NETPOL_CLUSTER_REPLY_MAX);
	if (redisReaderFeed(c->reader, p, n) != REDIS_OK)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	return 0;
}

static int odd(const char *what, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "no answer to %s", what);
}

static int greeted(struct netpol_cluster *c, const redisReply *r, struct aqe_err *e)
{
	if (c->step != STEP_LOAD) {
		if (r->type != REDIS_REPLY_STATUS || !aqe_str_eq(r->str, "OK"))
			return odd("the greeting", e);
	} else {
		if (r->type != REDIS_REPLY_STRING || (size_t)r->len != SHA_LEN ||
		    strspn(r->str, "0123456789abcdef") != SHA_LEN)
			return odd("SCRIPT LOAD", e);
		memcpy(c->sha, r->str, SHA_LEN + 1);
	}
	c->step = after(c, c->step);
	return 0;
}

static int judged(const redisReply *r, struct netpol_cluster_answer *ret, struct aqe_err *e)
{
	long long v[3];

	if (r->type != REDIS_REPLY_ARRAY || r->elements != AQE_COUNT(v))
		return odd("the script", e);
	for (size_t i = 0; i < AQE_COUNT(v); i++) {
		if (r->element[i]->type != REDIS_REPLY_INTEGER || r->element[i]->integer < 0)
			return odd("the script", e);
		v[i] = r->element[i]->integer;
	}
	if (v[0] > 1 || (v[0] == 1) != (v[1] == 0))
		return odd("the script", e);
	*ret = (struct netpol_cluster_answer){ v[0] == 1, (uint64_t)v[1], v[2] };
	return 0;
}

static int refusal(const redisReply *r, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(512);

	aqe_buf_quote(&shown, r->str ? r->str : "", SHOWN_MAX);
	return aqe_err_set(e, AQE_E_REFUSED, 0, "the server says '%s'", aqe_buf_str(&shown));
}

static int take(struct netpol_cluster *c, const redisReply *r, struct aqe_buf *out,
		enum netpol_cluster_said *ret_said, struct netpol_cluster_answer *ret,
		struct aqe_err *e)
{
	int rc;

	/* A server that was flushed or restarted behind a proxy has forgotten the script. */
	if (r->type == REDIS_REPLY_ERROR && c->step == STEP_READY && !c->resent &&
	    aqe_starts(r->str, "NOSCRIPT")) {
		c->resent = true;
		*ret_said = NETPOL_CLUSTER_RESEND;
		return ask(c, "EVAL", SCRIPT, out, e);
	}
	if (r->type == REDIS_REPLY_ERROR)
		return refusal(r, e);
	if (c->step == STEP_READY) {
		*ret_said = NETPOL_CLUSTER_ANSWER;
		return judged(r, ret, e);
	}
	rc = greeted(c, r, e);
	*ret_said = c->step == STEP_READY ? NETPOL_CLUSTER_READY : NETPOL_CLUSTER_MORE;
	return rc;
}

/* One reply, or none. */
static int next(struct netpol_cluster *c, redisReply **ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(512);
	void *r = NULL;

	if (redisReaderGetReply(c->reader, &r) != REDIS_OK) {
		aqe_buf_quote(&shown, c->reader->errstr, SHOWN_MAX);
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not Redis' protocol: %s",
				   aqe_buf_str(&shown));
	}
	if (r)
		c->held = c->reader->len - c->reader->pos;
	*ret = r;
	return 0;
}

int netpol_cluster_next(struct netpol_cluster *c, struct aqe_buf *out,
			enum netpol_cluster_said *ret_said, struct netpol_cluster_answer *ret,
			struct aqe_err *e)
{
	redisReply *r = NULL;
	int rc;

	do {
		rc = c->reader ? next(c, &r, e) : 0;
		*ret_said = NETPOL_CLUSTER_MORE;
		if (rc || !r)
			return rc;
		rc = take(c, r, out, ret_said, ret, e);
		freeReplyObject(r);
	} while (!rc && *ret_said == NETPOL_CLUSTER_MORE);
	return rc;
}
