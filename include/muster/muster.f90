! SPDX-License-Identifier: BSD-3-Clause
! muster.h's barrier for Fortran 2008. Compile this file with the program, and link to libmuster.
! The functions are C's: what they do, take and return is said there. Ranks count from 0.
module muster
  use, intrinsic :: iso_c_binding
  implicit none
  private

  enum, bind(c)
    enumerator :: MUSTER_OK = 0, MUSTER_EINVAL, MUSTER_EUNKNOWN, MUSTER_ENOTSUP, MUSTER_EDECLINED, &
      MUSTER_ENOMEM, MUSTER_ESYSTEM, MUSTER_EFOREIGN, MUSTER_ETIMEDOUT, MUSTER_EBROKEN, &
      MUSTER_EPEER, MUSTER_EBUSY
  end enum
  integer(c_int), parameter, public :: MUSTER_SHARED = 1, MUSTER_SPLIT = 2, MUSTER_EXACT = 4, &
    MUSTER_APART = 8

  !> Texts by c_loc() of characters that end with c_null_char.
  type, bind(c), public :: muster_options
    integer(c_size_t) :: size
    integer(c_int) :: participants
    type(c_ptr) :: algorithm
    type(c_ptr) :: wait
    integer(c_int) :: flags
    type(c_ptr) :: topology
    type(c_ptr) :: map_by
    type(c_ptr) :: bindings
    integer(c_int) :: others
    type(c_ptr) :: other_bindings
    type(c_ptr) :: segment
    type(c_ptr) :: memory
    integer(c_size_t) :: memory_bytes
    type(c_funptr) :: progress
    type(c_funptr) :: completion
    type(c_ptr) :: context
    integer(c_int32_t) :: first_episode
  end type

  interface
    subroutine options_init_sized(options, size) bind(c, name="muster_options_init_sized")
      import :: c_size_t, muster_options
      type(muster_options), intent(out) :: options
      integer(c_size_t), value :: size
    end subroutine
    integer(c_int) function muster_barrier_create(barrier, options) bind(c)
      import :: c_int, c_ptr, muster_options
      type(c_ptr), intent(inout) :: barrier
      type(muster_options), intent(in) :: options
    end function
    integer(c_int) function muster_barrier_publish(barrier, name) bind(c)
      import :: c_int, c_ptr, c_char
      type(c_ptr), value :: barrier
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function muster_barrier_attach_name(barrier, name, timeout_ns) bind(c)
      import :: c_int, c_ptr, c_char, c_int64_t
      type(c_ptr), intent(inout) :: barrier
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: timeout_ns
    end function
    integer(c_int) function muster_barrier_wait(barrier, rank) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: barrier
      integer(c_int), value :: rank
    end function
    integer(c_int) function muster_barrier_timedwait(barrier, rank, timeout_ns) bind(c)
      import :: c_int, c_ptr, c_int64_t
      type(c_ptr), value :: barrier
      integer(c_int), value :: rank
      integer(c_int64_t), value :: timeout_ns
    end function
    integer(c_int) function muster_barrier_arrive(barrier, rank) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: barrier
      integer(c_int), value :: rank
    end function
    integer(c_int) function muster_barrier_depart(barrier, rank) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: barrier
      integer(c_int), value :: rank
    end function
    integer(c_int) function muster_barrier_blame(barrier, rank) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: barrier
      integer(c_int), intent(out) :: rank
    end function
    integer(c_int) function muster_barrier_participants(barrier) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: barrier
    end function
    subroutine muster_barrier_destroy(barrier) bind(c)
      import :: c_ptr
      type(c_ptr), value :: barrier
    end subroutine
    type(c_ptr) function last_error() bind(c, name="muster_last_error")
      import :: c_ptr
    end function
  end interface

  public :: MUSTER_OK, MUSTER_EINVAL, MUSTER_EUNKNOWN, MUSTER_ENOTSUP, MUSTER_EDECLINED, &
    MUSTER_ENOMEM, MUSTER_ESYSTEM, MUSTER_EFOREIGN, MUSTER_ETIMEDOUT, MUSTER_EBROKEN, &
    MUSTER_EPEER, MUSTER_EBUSY
  public :: muster_options_init, muster_barrier_create, muster_barrier_publish, &
    muster_barrier_attach_name, muster_barrier_wait, muster_barrier_timedwait, &
    muster_barrier_arrive, muster_barrier_depart, muster_barrier_blame, &
    muster_barrier_participants, muster_barrier_destroy, muster_last_error

contains

  !> muster.h's muster_options_init().
  subroutine muster_options_init(options)
    type(muster_options), intent(out) :: options
    call options_init_sized(options, c_sizeof(options))
  end subroutine

  !> muster.h's muster_last_error().
  function muster_last_error() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer, parameter :: most = 4096
    integer :: length
    call c_f_pointer(last_error(), characters, [most])
    length = 0
    do while (length < most)
      if (characters(length + 1) == c_null_char) exit
      length = length + 1
    end do
    allocate(character(len=length) :: text)
    if (length > 0) text = transfer(characters(:length), text)
  end function

end module muster
