/* SPDX-License-Identifier: MIT */
#include "netpolicy/suffix.h"

#include <stddef.h>
#include <string.h>

#include "shim/core/text.h"

/* Second labels that are suffixes in most countries: LABEL.cc. Where a country does not use one, a
 * wildcard over it is refused all the same: nobody needs it. */
static const char *const EVERYWHERE[] = {
	"ac", "co", "com", "edu", "gob", "gouv", "gov", "mil", "net", "org", NULL,
};

/* Those of some countries only; elsewhere they are ordinary names (web.de). */
static const struct {
	const char *label, *countries;
} SOMEWHERE[] = {
	{ "asso", "ci dz fr gp ht km mc nc re" },
	{ "biz", "az bb cy et fj id in ki ls mv mw my ni nr pk pl pr ss tj tr tt vn zm" },
	{ "coop", "ar br ht in km mv mw py rw tt" },
	{ "ed", "ao ci cr jp pw" },
	{ "firm", "co ht in nf ro ve" },
	{ "go", "ci cr id it jp ke kr pw th tj tz ug" },
	{ "gv", "ao at" },
	{ "id", "au ir lv ly us" },
	{ "in", "na ni rs th ua us" },
	{ "info",
	  "au az bb bj bo co ec et fj gu ht hu in ke ki la ls mv na nf ni nr pk pl pr ro sd "
	  "tn tr tt tz ve vn zm" },
	{ "int", "ar az bo ci co cv in is la lk mv mw ni pt tj tt ve vn" },
	{ "k12", "ec il tr vi" },
	{ "ltd", "cy gi lk uk" },
	{ "me", "in it ke so ss tz uk us" },
	{ "med", "br ec ee ht ly om pa sa sd" },
	{ "name", "az eg et fj hr jo mk mv my na ng pr qa tj tr tt vn" },
	{ "ne", "jp ke kr pw tz ug us" },
	{ "nom", "ad ag co es fr km mg nc ni pa pe pl re ro tm ve za" },
	{ "or", "at bi ci cr id it jp ke kr mu na pw th tz ug us" },
	{ "plc", "ly uk" },
	{ "pro", "az br cy ec fj ht in mv na om pr tt vn" },
	{ "sc", "cn ke kr ls tz ug us" },
	{ "sch", "ae id ir jo lk ly ng qa sa ss zm" },
	{ "tm", "cy dz fr hu km mc mg no pl ro se za" },
	{ "tv", "bb bo br im in it na sd tr tz" },
	{ "web", "bo co do gu id lk nf ni pk tj tr ve za" },
};

/* Suffixes below which every label is one. */
static const char *const WHOLE[] = {
	"bd", "ck", "er", "fk", "jm", "kh", "mm", "np", "pg", "nom.br", "sch.uk", NULL,
};

/* Below us: the states' two letters, and below them schools, colleges and libraries. */
static const char *const US_STATE_LABELS[] = { "k12", "cc", "lib", NULL };

/* Suffixes that follow no rule, by country. */
static const char *const SINGLE[] = {
	"asn.au",      "conf.au",    "id.au",       "oz.au",    "adv.br",        "art.br",
	"blog.br",     "eco.br",     "eng.br",      "flog.br",  "ind.br",        "leg.br",
	"med.br",      "mp.br",      "tv.br",       "vlog.br",  "wiki.br",       "ab.ca",
	"bc.ca",       "gc.ca",      "mb.ca",       "nb.ca",    "nf.ca",         "nl.ca",
	"ns.ca",       "nt.ca",      "nu.ca",       "on.ca",    "pe.ca",         "qc.ca",
	"sk.ca",       "yk.ca",      "ah.cn",       "bj.cn",    "gd.cn",         "hk.cn",
	"sh.cn",       "sz.cn",      "tw.cn",       "zj.cn",    "gen.in",        "ind.in",
	"res.in",      "gc.in",      "idf.il",      "muni.il",  "ad.jp",         "ed.jp",
	"gr.jp",       "lg.jp",      "kawasaki.jp", "kobe.jp",  "kyoto.jp",      "nagoya.jp",
	"osaka.jp",    "sapporo.jp", "sendai.jp",   "tokyo.jp", "yokohama.jp",   "kitakyushu.jp",
	"pe.kr",       "re.kr",      "es.kr",       "hs.kr",    "ms.kr",         "sc.kr",
	"seoul.kr",    "busan.kr",   "cri.nz",      "geek.nz",  "gen.nz",        "govt.nz",
	"health.nz",   "iwi.nz",     "kiwi.nz",     "maori.nz", "parliament.nz", "school.nz",
	"me.uk",       "nhs.uk",     "police.uk",   "club.tw",  "ebiz.tw",       "game.tw",
	"idv.tw",      "alt.za",     "agric.za",    "law.za",   "ngo.za",        "nis.za",
	"school.za",   "tm.za",      "tm.fr",       "bel.tr",   "gen.tr",        "pol.tr",
	"tel.tr",      "tv.tr",      "in.th",       "mi.th",    "idn.id",        "my.id",
	"desa.id",     "in.ua",      "kiev.ua",     "kyiv.ua",  "lviv.ua",       "dni.us",
	"fed.us",      "isa.us",     "kids.us",     "nsn.us",   "nhs.uk",        "waw.pl",
	"warszawa.pl", "krakow.pl",  "msk.ru",      "spb.ru",   "gob.es",
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

/* True when `country` is one of a row's two-letter words. */
static bool in_countries(const char *words, const char *country)
{
	for (; *words; words += words[2] ? 3 : 2) {
		if (memcmp(words, country, 2) == 0)
			return true;
	}
	return false;
}

/* LABEL.cc, `label` of `n` bytes. */
static bool is_country_suffix(const char *label, size_t n, const char *country)
{
	if (strcmp(country, "us") == 0 && n == 2)
		return true;
	for (size_t i = 0; EVERYWHERE[i]; i++) {
		if (strlen(EVERYWHERE[i]) == n && memcmp(EVERYWHERE[i], label, n) == 0)
			return true;
	}
	for (size_t i = 0; i < AQE_COUNT(SOMEWHERE); i++) {
		if (strlen(SOMEWHERE[i].label) == n && memcmp(SOMEWHERE[i].label, label, n) == 0)
			return in_countries(SOMEWHERE[i].countries, country);
	}
	return false;
}

/* "k12.ca.us" */
static bool is_us_state(const char *base, const char *rest)
{
	const size_t n = (size_t)(rest - base) - 1;

	if (strlen(rest) != 5 || strcmp(rest + 2, ".us") != 0)
		return false;
	for (size_t i = 0; US_STATE_LABELS[i]; i++) {
		if (strlen(US_STATE_LABELS[i]) == n && memcmp(US_STATE_LABELS[i], base, n) == 0)
			return true;
	}
	return false;
}

bool netpol_suffix_is_public(const char *base)
{
	const char *dot = strchr(base, '.'), *rest = dot ? dot + 1 : NULL;

	if (!dot)
		return true;
	if (aqe_str_in(rest, WHOLE) || find(SINGLE, AQE_COUNT(SINGLE), base) ||
	    is_us_state(base, rest))
		return true;
	return strlen(rest) == 2 && is_country_suffix(base, (size_t)(dot - base), rest);
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
