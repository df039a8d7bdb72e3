/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"

void netpol_ledger_init(struct netpol_ledger *l, int chan)
{
	memset(l, 0, sizeof(*l));
	l->chan = chan;
	l->last = &l->first;
}

void netpol_ledger_done(struct netpol_ledger *l)
{
	free(l->backlog);
	l->backlog = NULL;
	l->n_backlog = 0;
}

bool netpol_ledger_send(struct netpol_ledger *l)
{
	struct netpol_msg_records *m = &l->out;

	if (m->n == 0)
		return true;
	m->type = NETPOL_MSG_RECORDS;
	if (netpol_wire_send(l->chan, m, netpol_wire_records_size(m), -1) != NETPOL_WIRE_SENT)
		return false;
	m->n = m->len = 0;
	return true;
}

static size_t pack(struct netpol_msg_records *m, const struct netpol_record *r)
{
	return netpol_record_pack(r, m->packed + m->len, sizeof(m->packed) - m->len);
}

static bool send_record(struct netpol_ledger *l, const struct netpol_record *r)
{
	struct netpol_msg_records *m = &l->out;
	size_t n;

	if (l->sent - l->stored >= NETPOL_LEDGER_WAITING)
		return false;
	n = pack(m, r);
	if (n == 0 && netpol_ledger_send(l)) /* there is room for any in an empty one */
		n = pack(m, r);
	if (n == 0)
		return false;
	m->len = (uint16_t)(m->len + n);
	m->n++;
	m->serial = l->sent + 1;
	if (l->queued) {
		l->queued(l);
	} else if (!netpol_ledger_send(l)) {
		m->len = (uint16_t)(m->len - n);
		m->n--;
		m->serial--;
		return false;
	}
	l->sent++;
	return true;
}

bool netpol_ledger_put(struct netpol_ledger *l, const struct netpol_record *r,
		       struct netpol_wait *w)
{
	/* What waits in the backlog came before. */
	if (l->n_backlog > 0 || !send_record(l, r))
		return false;
	w->serial = l->sent;
	w->waiting = true;
	w->next = NULL;
	*l->last = w;
	l->last = &w->next;
	return true;
}

void netpol_ledger_tell(struct netpol_ledger *l, const struct netpol_record *r)
{
	if (l->n_backlog == 0 && send_record(l, r))
		return;
	if (!l->backlog)
		l->backlog = calloc(NETPOL_LEDGER_BACKLOG, sizeof(*l->backlog));
	if (l->backlog && l->n_backlog < NETPOL_LEDGER_BACKLOG)
		l->backlog[l->n_backlog++] = *r;
	else
		l->lost++;
}

void netpol_ledger_forget(struct netpol_ledger *l, struct netpol_wait *w)
{
	struct netpol_wait **at = &l->first;

	if (!w->waiting)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (l->last == &w->next)
		l->last = at;
	w->waiting = false;
}

static void send_backlog(struct netpol_ledger *l)
{
	size_t done = 0;

	while (done < l->n_backlog && send_record(l, &l->backlog[done]))
		done++;
	l->n_backlog -= done;
	memmove(l->backlog, l->backlog + done, l->n_backlog * sizeof(*l->backlog));
	if (l->n_backlog == 0)
		netpol_ledger_done(l);
}

void netpol_ledger_stored(struct netpol_ledger *l, uint64_t serial, bool ok)
{
	if (serial > l->sent || serial < l->stored)
		return;
	l->stored = serial;
	(void)netpol_ledger_send(l); /* what found the channel full */
	while (l->first && l->first->serial <= serial) {
		struct netpol_wait *w = l->first;

		netpol_ledger_forget(l, w);
		w->fn(w, ok);
	}
	if (l->n_backlog > 0)
		send_backlog(l);
}

/* FNV-1a with a random start: an agent cannot choose names that fall together. */
static uint64_t hash_text(uint64_t h, const char *text)
{
	const uint64_t prime = 0x100000001b3;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * prime;
	return (h ^ 0xff) * prime; /* the text's end */
}

static uint64_t hash_kind(const struct netpol_repeats *p, const struct netpol_record *r)
{
	uint64_t h = hash_text(p->seed ^ r->port, r->listener);

	h = hash_text(h, r->reason);
	h = hash_text(h, r->host);
	return hash_text(h, r->raw_host);
}

static size_t find_kind(const struct netpol_repeats *p, uint64_t hash)
{
	size_t i = 0;

	while (i < p->n && p->kinds[i].hash != hash)
		i++;
	return i;
}

bool netpol_repeats_first(struct netpol_repeats *p, const struct netpol_record *r)
{
	uint64_t hash = hash_kind(p, r);
	size_t i = find_kind(p, hash);

	if (i < p->n || i == NETPOL_REPEATS_MAX)
		return false;
	p->kinds[i].hash = hash;
	p->kinds[i].row = NULL;
	p->n++;
	return true;
}

void netpol_repeats_count(struct netpol_repeats *p, const struct netpol_record *r)
{
	size_t i = find_kind(p, hash_kind(p, r));
	struct netpol_record *row;
	bool rest = i == p->n;

	if (rest && i == 0) /* nothing was counted as first: cannot be */
		return;
	i -= rest;
	row = p->kinds[i].row;
	if (!row) {
		row = calloc(1, sizeof(*row));
		if (!row)
			return; /* without memory not even a count */
		*row = *r;
		row->phase = NETPOL_PHASE_REPEATED;
		row->count = 0;
		row->path[0] = '\0'; /* theirs differ */
		p->kinds[i].row = row;
	}
	if (rest) { /* an agent that varies its names gets one common count */
		row->host[0] = row->raw_host[0] = row->rule[0] = '\0';
		row->port = 0;
	}
	row->count++;
}

void netpol_repeats_flush(struct netpol_repeats *p, struct netpol_ledger *l, int64_t now_ns)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->kinds[i].row && l) {
			p->kinds[i].row->at_ns = now_ns;
			netpol_ledger_tell(l, p->kinds[i].row);
		}
		free(p->kinds[i].row);
		p->kinds[i].row = NULL;
	}
	p->n = 0;
}
