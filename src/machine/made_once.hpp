// SPDX-License-Identifier: BSD-3-Clause
// Function-local statics that a fork cannot leave half made. The compiler's has a guard, and the
// child of a fork at the moment when another thread makes it waits there for ever: it does not have
// that thread. Here whoever finds none makes one, and the first that is ready stays.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace muster {

/// Never destroyed: threads use it after main has ended.
template <class T>
class MadeOnce {
 public:
  /// `make()` may be called several times, by several threads.
  const T& get(auto make) {
    const T* made = made_.load(std::memory_order_acquire);
    if (made != nullptr) [[likely]]
      return *made;
    auto fresh = std::make_unique<const T>(make());
    if (made_.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel)) {
      made = fresh.release();
    }
    return *made;
  }

 private:
  std::atomic<const T*> made_{nullptr};
};

/// What was made for each key, so many at most. Never destroyed either.
template <class Key, class T, unsigned most>
class Remembered {
 public:
  /// `make()` is called for each key once, or more often by several threads at once, or each time
  /// if there are too many keys. Thread-safe.
  T of(const Key& key, auto make) {
    const Known* const first = known_.load(std::memory_order_acquire);
    for (const Known* at = first; at != nullptr; at = at->next) {
      if (at->key == key) return at->value;
    }
    T value = make();
    if (first != nullptr && first->count >= most) return value;
    auto* const fresh = new Known{key, value, first, first != nullptr ? first->count + 1 : 1};
    while (!known_.compare_exchange_weak(fresh->next, fresh, std::memory_order_acq_rel)) {
      fresh->count = fresh->next->count + 1;
    }
    return value;
  }

 private:
  struct Known {
    Key key;
    T value;
    const Known* next;
    unsigned count;  ///< with those that come after
  };
  std::atomic<const Known*> known_{nullptr};
};

}  // namespace muster
