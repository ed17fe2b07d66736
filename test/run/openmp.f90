! SPDX-License-Identifier: BSD-3-Clause
! An unmodified OpenMP program in Fortran; "passed" is its last word.
program openmp
  use omp_lib
  implicit none
  integer :: members, words(0:3), me, episode, i
  members = 4 + command_argument_count()
  words = 0
  !$omp parallel if(members > 2) num_threads(4) private(me, episode, i)
  me = omp_get_thread_num()
  do episode = 1, 1000
    words(me) = episode
    !$omp barrier
    do i = 0, 3
      if (words(i) /= episode) stop 1
    end do
    !$omp barrier
  end do
  !$omp end parallel
  !$omp parallel if(members > 100)
  !$omp barrier
  if (omp_get_num_threads() /= 1) stop 2
  !$omp end parallel
  print '(a)', 'passed'
end program
