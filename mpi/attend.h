/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI's progress while a barrier waits. Not in the first steps (a step is about a microsecond,
 * or a turn of the other processes here): barriers that are quick anyway should not pay for it.
 * After that in every step: who has waited so long loses nothing by it. After a sleep for a while,
 * since whoever is answered then may ask again at once; not long if it was woken late, since then
 * others want the CPU.
 * Nonzero: twice lately there was something to do, so there may be more soon. That no MPI tells;
 * but to find nothing takes it a fraction of a microsecond, always about the same, and to serve
 * a message many times that. So does an interrupt, but hardly twice in a millisecond, and the
 * first look after a sleep, which does not count; who was away for longer has to share the CPU.
 * What a look takes at its quickest may change: each longer one raises it a little.
 */
#ifndef MUSTER_MPI_ATTEND_H
#define MUSTER_MPI_ATTEND_H

/** What makes the MPI progress. Before the first barrier. */
void attend_with(void (*progress_of_mpi)(void));

/** muster_options.progress of a `slot`. */
int attend(void* waiting);

#endif /* MUSTER_MPI_ATTEND_H */
