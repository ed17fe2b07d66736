! SPDX-License-Identifier: BSD-3-Clause
! The ways in which Fortran calls the barrier.
subroutine by_module(comm)
  use mpi
  integer, intent(in) :: comm
  integer :: ierror, i
  do i = 1, 100
    call MPI_Barrier(comm, ierror)
    if (ierror /= MPI_SUCCESS) call MPI_Abort(comm, 3, ierror)
  end do
end subroutine

program fortran
  use mpi_f08
  type(MPI_Comm) :: made
  integer :: rank, i
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, made)
  do i = 1, 100
    call MPI_Barrier(made)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  call by_module(made%MPI_VAL)
  call MPI_Comm_free(made)
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'passed'
end program
