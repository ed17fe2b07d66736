// SPDX-License-Identifier: BSD-3-Clause
// What a client wants done, in the words of lock/shape.hpp: how a section is executed on hardware.
#pragma once

#include "delegation/any_lock.hpp"

namespace muster::delegation {

class Work {
 public:
  Work(Section section, const Board& board, AnyLock* lock) noexcept
      : lock_(lock),
        section_(section),
        board_(board),
        errno_of_thread_(this_thread.error),
        error_(*errno_of_thread_) {}

  template <class M>
  void run_own(M&) noexcept {
    const Inside inside(lock_, false);
    *errno_of_thread_ = error_;  // waiting may have changed it
    section_();
    error_ = *errno_of_thread_;
    lock_->run_deferred();
    put_ = nullptr;
  }
  template <class M>
  void put(M&, unsigned slot) noexcept {
    put_ = &board_.at(slot);
    put_->section = section_;
    put_->error = 0;
  }
  template <class M>
  void run(M&, unsigned slot) noexcept {
    Request& request = board_.at(slot);
    const Inside inside(lock_, &request != put_);
    int& error = *errno_of_thread_;
    const int kept = error;
    error = 0;
    request.section();
    if (error != 0) request.error = error;
    lock_->run_deferred();
    error = kept;
  }

  /// After the section: the caller's errno is what the section left, or as before if it set none.
  void finish() const noexcept {
    *errno_of_thread_ = put_ != nullptr && put_->error != 0 ? put_->error : error_;
  }

 protected:
  AnyLock* lock_;

 private:
  Section section_;
  const Board& board_;
  Request* put_ = nullptr;
  int* errno_of_thread_;
  int error_;
};

}  // namespace muster::delegation
