/* SPDX-License-Identifier: MIT */
/* The command line of aqe-egress, which `aqe egress` becomes: one service, in the foreground. */
#ifndef AQE_SHIM_EGRESS_SERVICE_H
#define AQE_SHIM_EGRESS_SERVICE_H

/* argv[0] is the command's own name. Returns an enum shim_exit: OK when it was asked to end or the
 * container ended, FAILED when it could not start or crashed too often. */
int shim_egress_main(int argc, char **argv);

#endif
