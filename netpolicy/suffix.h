/* SPDX-License-Identifier: MIT */
/* What stands above many owners: public suffixes, which no wildcard may cover, and domains whose
 * subdomains anybody can rent, which deserve a warning. */
#ifndef AQE_NETPOLICY_SUFFIX_H
#define AQE_NETPOLICY_SUFFIX_H

#include <stdbool.h>

/* True when registrars sell names directly below `base` (lower case, no dots at the ends): every
 * single label, and the second-level suffixes of countries. A part of the Public Suffix List's
 * first section, by rule where the countries agree. */
bool netpol_suffix_is_public(const char *base);
/* The domain of the built-in list that `*.base` covers and that has many tenants, or NULL. */
const char *netpol_suffix_shared(const char *base);
/* The same for an exact host that serves many tenants under one name. */
const char *netpol_suffix_shared_host(const char *host);

#endif
