// SPDX-License-Identifier: BSD-3-Clause
// Which process of a line of forks this is. A fork's child has a copy of its parent's memory and
// none of its threads: what these serve or hold there never moves again, so the child gets an error
// where it would wait for them, and its own where the parent has one by itself.
#pragma once

#include <atomic>
#include <memory>

namespace muster::delegation {

/// The process's: a fork's child has another.
inline constexpr unsigned first_generation = 1;
inline std::atomic<unsigned> current_generation{first_generation};
inline unsigned generation() noexcept { return current_generation.load(std::memory_order_relaxed); }

/// The process that has made an object; a member of it.
class Birth {
 public:
  /// False in a fork's child.
  bool is_here() const noexcept { return in_ == generation(); }
  /// Throws Error(busy) in a fork's child. `what` was made, and what the child does instead.
  void require(const char* what, const char* instead) const {
    if (!is_here()) [[unlikely]]
      refuse(what, instead);
  }

 private:
  [[noreturn, gnu::cold]] static void refuse(const char* what, const char* instead);

  unsigned in_ = generation();
};

/// A pointer to what each process of the line has one of, made when it is first needed and never
/// destroyed: threads use it after main has ended, and a child leaves its parent's as it is.
template <class Pointer>
class PerGeneration {
 public:
  const Pointer& get(auto make) {
    const Made* made = made_.load(std::memory_order_acquire);
    if (made != nullptr && made->birth.is_here()) [[likely]]
      return made->pointer;
    auto fresh = std::make_unique<Made>(Made{.pointer = make(), .before = made, .birth = {}});
    if (made_.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel)) {
      made = fresh.release();  // else another thread was first
    }
    return made->pointer;
  }

 private:
  struct Made {
    Pointer pointer;
    const Made* before;  ///< the parent's
    Birth birth;
  };
  std::atomic<const Made*> made_{nullptr};
};

}  // namespace muster::delegation
