/* SPDX-License-Identifier: MIT */
/* Where a running egress service of a container answers `aqe`: a unix socket (mode 0600) in the
 * container's record directory. One JSON object a line in, one out; {"op":"reload"} reads the
 * policy files anew and answers {"version":1,"ok":true,"changed":BOOL,"digest":"sha256:..."}, or
 * {"version":1,"ok":false,"code":CODE,"error":TEXT} when the old policy stays. */
#ifndef AQE_AQE_CONTROL_H
#define AQE_AQE_CONTROL_H

#define SHIM_CONTROL_SOCKET "egress.sock"

#endif
