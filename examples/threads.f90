! SPDX-License-Identifier: BSD-3-Clause
! OpenMP's threads take steps together: what one wrote before the barrier the others see after it.
program threads
  use, intrinsic :: iso_c_binding
  use omp_lib
  use muster
  implicit none
  integer, parameter :: count = 4, steps = 1000
  type(muster_options) :: options
  type(c_ptr) :: barrier = c_null_ptr
  integer :: values(0:count - 1, 0:1) = 0
  integer :: rank, step, failures = 0
  character(kind=c_char, len=9), target :: way = "no-such" // c_null_char

  call muster_options_init(options)
  options%participants = count
  options%wait = c_loc(way)
  if (muster_barrier_create(barrier, options) /= MUSTER_EUNKNOWN) error stop "a way that is none"
  print '(2a)', "a mistake is explained: ", muster_last_error()
  options%wait = c_null_ptr
  if (muster_barrier_create(barrier, options) /= MUSTER_OK) error stop muster_last_error()

  call omp_set_dynamic(.false.)
  !$omp parallel num_threads(count) private(rank, step) reduction(+:failures)
  rank = omp_get_thread_num()
  do step = 1, steps
    values(rank, mod(step, 2)) = step
    if (muster_barrier_wait(barrier, rank) /= MUSTER_OK) error stop muster_last_error()
    if (any(values(:, mod(step, 2)) /= step)) failures = failures + 1
  end do
  !$omp end parallel
  if (failures /= 0 .or. muster_barrier_participants(barrier) /= count) error stop "out of step"
  call muster_barrier_destroy(barrier)
  print '(i0, a, i0, a)', count, " threads, ", steps, " steps together"
end program threads
