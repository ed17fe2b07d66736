// SPDX-License-Identifier: BSD-3-Clause
// A barrier at work in this process: its block, and a seat (port and ticket) for each rank that
// waits here. The one place where the algorithms are instantiated for hardware.
#pragma once

#include <memory>

#include "capi/block.hpp"
#include "capi/plan.hpp"

namespace muster {

/// What the caller wants to be called for; see muster_options.
struct UserHooks {
  void (*progress)(void*) = nullptr;
  int (*completion)(void*) = nullptr;
  void* context = nullptr;
};

/// How a call ended.
struct Outcome {
  Status status = Status::ok;  ///< ok, busy, timeout, broken, peer, invalid or unsupported
  Breakage why;                ///< of a broken barrier; read before its memory may go
};

class Engine {
 public:
  static std::unique_ptr<Engine> make(const Plan& plan, const Block& block, const UserHooks& hooks);
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// By the creator, once, before anybody else can attach.
  virtual void prepare() = 0;

  /// In a fork's child, before its first wait: the ranks its parent took remain the parent's.
  virtual void drop_seats() = 0;

  /// A rank's first call allocates (throws std::bad_alloc). Once a call has returned, it touches
  /// nothing of the barrier any more: it may be destroyed.
  virtual Outcome wait(unsigned rank) = 0;
  virtual Outcome timed_wait(unsigned rank, std::int64_t timeout_ns) = 0;
  virtual Outcome arrive(unsigned rank) = 0;
  virtual Outcome depart(unsigned rank) = 0;

  /// Returns once no living participant, or none of this process, is inside a wait.
  void wait_until_left(bool only_own) const;

  const Plan& plan() const { return plan_; }
  const Block& block() const { return block_; }
  Breakage breakage() const {
    return Breakage::decode(block_.domain().broken.load(std::memory_order_acquire));
  }

 protected:
  Engine(const Plan& plan, const Block& block, const UserHooks& hooks)
      : plan_(plan), block_(block), hooks_(hooks) {}

  Plan plan_;
  Block block_;
  UserHooks hooks_;
};

}  // namespace muster
