/* SPDX-License-Identifier: MIT */
#include "netpolicy/suffix.h"

#include <stddef.h>
#include <string.h>

#include "shim/core/text.h"

/* Second labels that are suffixes in many countries: LABEL.cc. Where a country does not use one, a
 * wildcard over it is refused all the same: nobody needs it. */
static const char *const COUNTRY_LABELS[] = {
	"ac",     "co",   "com",  "ed",   "edu",   "go",     "gob", "gouv", "gov",
	"gv",     "int",  "k12",  "ltd",  "mil",   "ne",     "net", "nic",  "nom",
	"or",     "org",  "plc",  "pro",  "sch",   "web",    "biz", "name", "info",
	"museum", "coop", "asso", "firm", "press", "presse", NULL,
};

/* Countries where every second label is one. */
static const char *const WHOLE_COUNTRIES[] = {
	"bd", "ck", "er", "fk", "jm", "kh", "mm", "np", "pg", "us", NULL,
};

/* Suffixes that follow no rule, by country. */
static const char *const SINGLE[] = {
	"asn.au",        "conf.au",     "id.au",      "oz.au",       "adv.br",   "art.br",
	"blog.br",       "eco.br",      "eng.br",     "flog.br",     "ind.br",   "jus.br",
	"leg.br",        "med.br",      "mp.br",      "tv.br",       "vlog.br",  "wiki.br",
	"ab.ca",         "bc.ca",       "gc.ca",      "mb.ca",       "nb.ca",    "nf.ca",
	"nl.ca",         "ns.ca",       "nt.ca",      "nu.ca",       "on.ca",    "pe.ca",
	"qc.ca",         "sk.ca",       "yk.ca",      "ah.cn",       "bj.cn",    "gd.cn",
	"hk.cn",         "sh.cn",       "sz.cn",      "tw.cn",       "zj.cn",    "gen.in",
	"ind.in",        "res.in",      "gc.in",      "idf.il",      "muni.il",  "ad.jp",
	"ed.jp",         "gr.jp",       "lg.jp",      "kawasaki.jp", "kobe.jp",  "kyoto.jp",
	"nagoya.jp",     "osaka.jp",    "sapporo.jp", "sendai.jp",   "tokyo.jp", "yokohama.jp",
	"kitakyushu.jp", "pe.kr",       "re.kr",      "es.kr",       "hs.kr",    "ms.kr",
	"sc.kr",         "seoul.kr",    "busan.kr",   "cri.nz",      "geek.nz",  "gen.nz",
	"govt.nz",       "health.nz",   "iwi.nz",     "kiwi.nz",     "maori.nz", "parliament.nz",
	"school.nz",     "me.uk",       "nhs.uk",     "police.uk",   "club.tw",  "ebiz.tw",
	"game.tw",       "idv.tw",      "alt.za",     "agric.za",    "law.za",   "ngo.za",
	"nis.za",        "school.za",   "tm.za",      "tm.fr",       "bel.tr",   "gen.tr",
	"pol.tr",        "tel.tr",      "tv.tr",      "in.th",       "mi.th",    "idn.id",
	"my.id",         "desa.id",     "in.ua",      "kiev.ua",     "kyiv.ua",  "lviv.ua",
	"waw.pl",        "warszawa.pl", "krakow.pl",  "msk.ru",      "spb.ru",   "gob.es",
};

/* Domains below which different owners live side by side. */
static const char *const SHARED[] = {
	"akamaihd.net",
	"akamaized.net",
	"amazonaws.com",
	"appspot.com",
	"atlassian.net",
	"awsapprunner.com",
	"azure-api.net",
	"azureedge.net",
	"azurefd.net",
	"azurewebsites.net",
	"b-cdn.net",
	"backblazeb2.com",
	"blogspot.com",
	"cloudapp.azure.com",
	"cloudapp.net",
	"cloudflarestorage.com",
	"cloudfront.net",
	"cloudfunctions.net",
	"codeberg.page",
	"deno.dev",
	"digitaloceanspaces.com",
	"edgekey.net",
	"elasticbeanstalk.com",
	"fastly.net",
	"firebaseapp.com",
	"firebaseio.com",
	"fly.dev",
	"github.dev",
	"github.io",
	"githubpreview.dev",
	"githubusercontent.com",
	"gitlab.io",
	"gitpod.io",
	"glitch.me",
	"googleapis.com",
	"googleusercontent.com",
	"herokuapp.com",
	"hf.space",
	"loca.lt",
	"myshopify.com",
	"netlify.app",
	"ngrok-free.app",
	"ngrok.app",
	"ngrok.dev",
	"ngrok.io",
	"nip.io",
	"notion.site",
	"on.aws",
	"ondigitalocean.app",
	"onrender.com",
	"pages.dev",
	"pipedream.net",
	"r2.dev",
	"railway.app",
	"readthedocs.io",
	"repl.co",
	"replit.app",
	"replit.dev",
	"run.app",
	"sharepoint.com",
	"sslip.io",
	"supabase.co",
	"surge.sh",
	"trafficmanager.net",
	"translate.goog",
	"trycloudflare.com",
	"vercel.app",
	"web.app",
	"webhook.site",
	"windows.net",
	"wordpress.com",
	"workers.dev",
	"xip.io",
};

/* Hosts where the owner stands in the path. */
static const char *const SHARED_HOSTS[] = {
	"codeload.github.com",
	"gist.github.com",
	"gist.githubusercontent.com",
	"hooks.slack.com",
	"objects.githubusercontent.com",
	"pastebin.com",
	"raw.githubusercontent.com",
	"s3.amazonaws.com",
	"script.google.com",
	"storage.googleapis.com",
	"webhook.site",
};

static const char *find(const char *const *list, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i], s) == 0)
			return list[i];
	}
	return NULL;
}

/* True when the first `n` bytes of `s` are one of the list. */
static bool in_labels(const char *const *list, const char *s, size_t n)
{
	for (; *list; list++) {
		if (strlen(*list) == n && memcmp(*list, s, n) == 0)
			return true;
	}
	return false;
}

bool netpol_suffix_is_public(const char *base)
{
	const char *dot = strchr(base, '.');

	if (!dot)
		return true;
	if (strchr(dot + 1, '.'))
		return false;
	if (aqe_str_in(dot + 1, WHOLE_COUNTRIES) || find(SINGLE, AQE_COUNT(SINGLE), base))
		return true;
	return strlen(dot + 1) == 2 && in_labels(COUNTRY_LABELS, base, (size_t)(dot - base));
}

const char *netpol_suffix_shared(const char *base)
{
	const size_t n = strlen(base);

	for (size_t i = 0; i < AQE_COUNT(SHARED); i++) {
		const size_t len = strlen(SHARED[i]);

		if (len >= n && strcmp(SHARED[i] + (len - n), base) == 0 &&
		    (len == n || SHARED[i][len - n - 1] == '.'))
			return SHARED[i];
	}
	/* between a shared suffix and its tenants, such as s3.amazonaws.com */
	return netpol_suffix_shared_host(base);
}

const char *netpol_suffix_shared_host(const char *host)
{
	return find(SHARED_HOSTS, AQE_COUNT(SHARED_HOSTS), host);
}
