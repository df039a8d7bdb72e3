/* SPDX-License-Identifier: MIT */
/* The service's control socket, as shim/aqe/control.h describes it. */
#ifndef AQE_SHIM_EGRESS_CONTROL_H
#define AQE_SHIM_EGRESS_CONTROL_H

#include "netpolicy/egress/keeper.h"

extern const struct netpol_control_ops SHIM_EGRESS_CONTROL;

#endif
