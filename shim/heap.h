/* SPDX-License-Identifier: MIT */
/* The heap of a verb that judges. */
#ifndef AQE_SHIM_HEAP_H
#define AQE_SHIM_HEAP_H

/* Asks for one page of 2 MiB where malloc() goes on from here, and for none to be given back before
 * the process ends. A start touches sixty small pages of heap; on a virtual machine whose memory is
 * mapped page by page each costs 10 us and more, and the large one 120 us in all. Where there is
 * none the heap is as it would have been. */
void shim_heap_large(void);

#endif
