// SPDX-License-Identifier: BSD-3-Clause
// What the library tells the preload of `muster run` (run/preload.h), where that is there. It
// places the program's working threads (IsRegularThread of [PS18], Algorithm 2), around servers.
#pragma once

extern "C" {
[[gnu::weak, gnu::visibility("default")]] void muster_preload_own_threads(int more);
[[gnu::weak, gnu::visibility("default")]] void muster_preload_servers(unsigned pu, int more);
}

namespace muster {

/// Threads made in here are the library's own, no workers.
class OwnThreads {
 public:
  OwnThreads() { tell(1); }
  ~OwnThreads() { tell(-1); }
  OwnThreads(const OwnThreads&) = delete;
  OwnThreads& operator=(const OwnThreads&) = delete;

 private:
  static void tell(int more) {
    if (muster_preload_own_threads != nullptr) muster_preload_own_threads(more);
  }
};

}  // namespace muster
