/* SPDX-License-Identifier: MIT */
/* aqe-egress: the per-container egress service. A program of its own because it stays: without the
 * libraries of aqe it takes a tenth of the memory. */
#include "shim/core/proc.h"
#include "shim/egress_service.h"
#include "shim/input.h"

int main(int argc, char **argv)
{
	aqe_proc_fill_streams();
	return shim_output_end("aqe egress", shim_egress_main(argc, argv));
}
