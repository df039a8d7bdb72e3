/* SPDX-License-Identifier: MIT */
/* The version of this program. */
#ifndef AQE_SHIM_VERSION_H
#define AQE_SHIM_VERSION_H

#define SHIM_VERSION "0.1.0"

#endif
