// SPDX-License-Identifier: BSD-3-Clause
// What a client wants done, in the words of lock/shape.hpp: how a section is executed on hardware.
#pragma once

#include "delegation/any_lock.hpp"

namespace muster::delegation {

/// Who executes a section, and of which lock, where that is outside of all others: there is nothing
/// to put back. Each store on this way costs: the next exchange awaits them all.
class Outermost {
 public:
  Outermost(AnyLock* lock, bool) : thread_(this_thread) { thread_.enter(lock); }
  ~Outermost() { thread_.leave(); }
  Outermost(const Outermost&) = delete;

 private:
  Thread& thread_;
};

/// `Where`: Inside, or Outermost if the thread has called from outside of all sections.
template <class Where, class Board>
class WorkFrom {
 public:
  /// `copied`: of the argument, words that go with the request: an executor need not fetch another
  /// line.
  WorkFrom(Section section, Board board, AnyLock* lock, unsigned copied = 0) noexcept
      : lock_(lock),
        section_(section),
        board_(board),
        copied_(copied),
        errno_of_thread_(this_thread.error),
        error_(*errno_of_thread_) {}

  template <class M>
  void run_own(M&) noexcept {
    set_errno(error_);  // waiting may have changed it
    {
      const Where inside(lock_, false);
      section_();
      error_ = *errno_of_thread_;
      lock_->run_deferred();
    }
    put_ = nullptr;
  }
  template <class M>
  void put(M&, unsigned slot) noexcept {
    // One by one: both together could not be read before the constructor's two stores are in the
    // cache.
    Section& there = board_.at(slot);
    void* argument = section_.argument;
    if (copied_ != 0) {
      copy_ = board_.copy(slot);
      argument = copy_;
      copy_words(static_cast<const CopiedWord*>(section_.argument), copy_);
    }
    __atomic_store_n(&there.function, section_.function, __ATOMIC_RELAXED);
    __atomic_store_n(&there.argument, argument, __ATOMIC_RELAXED);
    put_ = &board_.error(slot);
    if (*put_ != 0) [[unlikely]]
      *put_ = 0;
  }
  template <class M>
  void run(M&, unsigned slot) noexcept {
    const Section section = board_.at(slot);
    int& left = board_.error(slot);
    const bool for_another = !board_.is_of_client(put_, slot);  // an earlier one of its own is not
    const Where inside(lock_, for_another);
    int& error = *errno_of_thread_;
    const int kept = error;
    error = 0;
    section();
    if (error != 0) left = error;
    lock_->run_deferred();
    error = kept;
    if (for_another && !lock_->in_own_process()) [[unlikely]]
      end_executors_child();
  }

  /// After the section: the caller's errno is what the section left, or as before if it set none.
  void finish() const noexcept {
    if (put_ != nullptr && copied_ != 0) {
      copy_words(copy_, static_cast<CopiedWord*>(section_.argument));
    }
    set_errno(put_ != nullptr && *put_ != 0 ? *put_ : error_);
  }

 protected:
  AnyLock* lock_;

 private:
  void copy_words(const CopiedWord* from, CopiedWord* to) const noexcept {
    for (unsigned i = 0; i < copied_; ++i) {
      __atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    }
  }
  void set_errno(int error) const noexcept {
    if (*errno_of_thread_ != error) [[unlikely]]
      *errno_of_thread_ = error;
  }

  Section section_;
  Board board_;
  unsigned copied_;
  CopiedWord* copy_ = nullptr;
  int* put_ = nullptr;  ///< where its executor leaves errno, if it has one
  int* errno_of_thread_;
  int error_;
};

}  // namespace muster::delegation
