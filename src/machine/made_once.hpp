// SPDX-License-Identifier: BSD-3-Clause
// A function-local static that a fork cannot leave half made. The compiler's has a guard, and the
// child of a fork at the moment when another thread makes it waits there for ever: it does not have
// that thread. Here whoever finds none makes one, and the first that is ready stays.
#pragma once

#include <atomic>
#include <memory>

namespace muster {

/// Never destroyed: threads use it after main has ended.
template <class T>
class MadeOnce {
 public:
  /// `make()` may be called several times, by several threads.
  template <class Make>
  const T& get(Make make) {
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

}  // namespace muster
