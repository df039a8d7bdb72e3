/* SPDX-License-Identifier: MIT */
#include "netpolicy/http1_chunk.h"

#include <stdio.h>

#include "netpolicy/http1_int.h"

enum state {
	SIZE,     /* in the size's digits */
	EXT,      /* in extensions */
	SIZE_LF,  /* after the CR of the size line */
	DATA,     /* in the data */
	DATA_CR,  /* behind the data */
	DATA_LF,  /* after its CR */
	LAST_LF,  /* after the CR of the last chunk's size line */
	LINE,     /* at the first byte of a trailer line */
	NAME,     /* in a trailer's name */
	VALUE,    /* in its value */
	VALUE_LF, /* after its CR */
	END_LF,   /* after the CR of the empty line */
	DONE,
	FAULT,
	STATE_COUNT
};

void netpol_h1_chunks_init(struct netpol_h1_chunks *c)
{
	c->left = 0;
	c->count = c->fields = 0;
	c->state = SIZE;
}

static int hex(unsigned char c)
{
	if (netpol_h1_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Each function takes one byte and gives the next state. */
static enum state in_size(struct netpol_h1_chunks *c, unsigned char b)
{
	int digit = hex(b);

	if (digit >= 0) {
		if (++c->count > NETPOL_H1_CHUNK_DIGITS_MAX)
			return FAULT;
		c->left = c->left << 4 | (unsigned)digit;
		return SIZE;
	}
	if (c->count == 0 || (b != ';' && b != '\r'))
		return FAULT;
	c->count = 1;
	if (b == ';')
		return EXT;
	return c->left > 0 ? SIZE_LF : LAST_LF;
}

static enum state in_ext(struct netpol_h1_chunks *c, unsigned char b)
{
	if (b == '\r')
		return c->left > 0 ? SIZE_LF : LAST_LF;
	if (!netpol_h1_is_text(b) || ++c->count > NETPOL_H1_CHUNK_EXT_MAX)
		return FAULT;
	return EXT;
}

static enum state at_size_lf(struct netpol_h1_chunks *c, unsigned char b)
{
	(void)c;
	return b == '\n' ? DATA : FAULT;
}

static enum state at_data_cr(struct netpol_h1_chunks *c, unsigned char b)
{
	(void)c;
	return b == '\r' ? DATA_LF : FAULT;
}

static enum state at_data_lf(struct netpol_h1_chunks *c, unsigned char b)
{
	c->count = 0;
	return b == '\n' ? SIZE : FAULT;
}

static enum state at_last_lf(struct netpol_h1_chunks *c, unsigned char b)
{
	c->count = 0;
	return b == '\n' ? LINE : FAULT;
}

static enum state at_line(struct netpol_h1_chunks *c, unsigned char b)
{
	if (b == '\r')
		return END_LF;
	if (!netpol_h1_is_token(b) || ++c->fields > NETPOL_H1_TRAILER_FIELDS_MAX)
		return FAULT;
	return NAME;
}

static enum state in_name(struct netpol_h1_chunks *c, unsigned char b)
{
	(void)c;
	if (b == ':')
		return VALUE;
	return netpol_h1_is_token(b) ? NAME : FAULT;
}

static enum state in_value(struct netpol_h1_chunks *c, unsigned char b)
{
	(void)c;
	if (b == '\r')
		return VALUE_LF;
	return netpol_h1_is_text(b) ? VALUE : FAULT;
}

static enum state at_value_lf(struct netpol_h1_chunks *c, unsigned char b)
{
	(void)c;
	return b == '\n' ? LINE : FAULT;
}

static enum state at_end_lf(struct netpol_h1_chunks *c, unsigned char b)
{
	(void)c;
	return b == '\n' ? DONE : FAULT;
}

typedef enum state state_fn(struct netpol_h1_chunks *c, unsigned char b);
static state_fn *const STATES[STATE_COUNT] = {
	[SIZE] = in_size,       [EXT] = in_ext,           [SIZE_LF] = at_size_lf,
	[DATA] = NULL,          [DATA_CR] = at_data_cr,   [DATA_LF] = at_data_lf,
	[LAST_LF] = at_last_lf, [LINE] = at_line,         [NAME] = in_name,
	[VALUE] = in_value,     [VALUE_LF] = at_value_lf, [END_LF] = at_end_lf,
	[DONE] = NULL,          [FAULT] = NULL,
};

static bool in_trailer(uint8_t state)
{
	return state >= LINE && state <= END_LF;
}

enum netpol_h1_step netpol_h1_chunks_next(struct netpol_h1_chunks *c, const char *p, size_t n,
					  size_t *ret_used, size_t *ret_data)
{
	size_t i = 0;

	*ret_data = 0;
	while (i < n && c->state != DATA && c->state != DONE && c->state != FAULT) {
		if (in_trailer(c->state) && ++c->count > NETPOL_H1_TRAILER_MAX)
			c->state = FAULT;
		else
			c->state = (uint8_t)STATES[c->state](c, (unsigned char)p[i++]);
	}
	if (c->state == DATA && i < n) {
		*ret_data = n - i < c->left ? n - i : (size_t)c->left;
		c->left -= *ret_data;
		i += *ret_data;
		if (c->left == 0)
			c->state = DATA_CR;
	}
	*ret_used = i;
	if (c->state == FAULT)
		return NETPOL_H1_BAD;
	return c->state == DONE ? NETPOL_H1_DONE : NETPOL_H1_MORE;
}

size_t netpol_h1_chunk_head(char ret[NETPOL_H1_CHUNK_HEAD_MAX + 1], size_t n)
{
	return (size_t)snprintf(ret, NETPOL_H1_CHUNK_HEAD_MAX + 1, "%zx\r\n", n);
}
