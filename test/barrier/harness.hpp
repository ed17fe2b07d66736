// SPDX-License-Identifier: BSD-3-Clause
// What the tests of barriers stand on: seeds that can be replayed, teams of threads or processes,
// memory they share, and a guard that turns a hang into a loud failure.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace muster::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_tsan = true;
#elif defined(__has_feature)
inline constexpr bool under_tsan = __has_feature(thread_sanitizer);
#else
inline constexpr bool under_tsan = false;
#endif

/// Under a sanitizer or an emulator: the same tests with fewer rounds.
#if defined(MUSTER_TEST_REDUCED)
inline constexpr bool reduced = true;
#else
inline constexpr bool reduced = false;
#endif

/// Under an emulator: fewer participants too.
#if defined(MUSTER_TEST_EMULATED)
inline constexpr bool emulated = true;
#else
inline constexpr bool emulated = false;
#endif

/// Whether a process with threads can fork a child that makes some, too: neither under
/// ThreadSanitizer nor under qemu-user.
inline constexpr bool children_make_threads = !under_tsan && !emulated;

/// MUSTER_SOAK: how much longer than usual tests run; 1 if unset.
unsigned soak_factor();

/// `full` rounds, or an eighth of them in a reduced run; times soak_factor().
unsigned rounds(unsigned full);

/// The running test's seed: of MUSTER_SEED (random if unset) and the test's name.
std::uint64_t case_seed();

/// The command that runs the running test again with the same seed.
std::string replay_command();

/// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  unsigned below(unsigned bound) { return static_cast<unsigned>(next() % bound); }
  bool one_in(unsigned n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

/// Numbers 0 to n - 1 in an order that the seed decides.
std::vector<unsigned> shuffled(unsigned n, Random& random);

/// Zeroed memory that processes forked afterwards share.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

/// One object in such memory.
template <class T>
class Shared {
 public:
  Shared() : memory_(sizeof(T)), object_(new (memory_.data()) T{}) {}
  ~Shared() { object_->~T(); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  SharedMemory memory_;
  T* object_;
};

/// The first failure that any thread or process of a team reports.
class FirstFailure {
 public:
  /// Thread-safe, also between processes; later ones are ignored.
  void report(const std::string& text);
  bool happened() const { return claimed_.load(std::memory_order_relaxed) != 0; }
  /// Empty if there was none. Once the team has ended.
  std::string text() const { return text_; }

 private:
  std::atomic<int> claimed_;
  char text_[600];
};

/// While it lives, a test that takes ten times `seconds`, what it may take on a quiet machine, ends
/// the whole program with the command that replays it and a stack, one in each child too. The limit
/// grows under sanitizers and with MUSTER_SOAK.
class HangGuard {
 public:
  explicit HangGuard(unsigned seconds, const std::string& what = "");
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;
};

/// How long a test waits for what has to happen: a machine may be busy, and a hang is the guard's.
inline constexpr std::int64_t patience_ns = 600'000'000'000;
inline constexpr std::int64_t patience_ms = patience_ns / 1'000'000;

/// Whether `attempt` is true once, in five minutes. For what takes long only where others have the
/// CPUs: a busy machine makes it longer now and then, a fault each time.
bool in_a_quiet_moment(const std::function<bool()>& attempt);

/// CPUs this process may use, as the operating system numbers them.
std::vector<unsigned> allowed_cpus();

/// Binds the calling thread to one CPU.
void bind_to_cpu(unsigned cpu);

/// Nanoseconds of CPU time that the calling thread has used.
std::int64_t thread_cpu_ns();
/// The same of the whole process.
std::int64_t process_cpu_ns();

/// Calls body(rank) for ranks 0 to n - 1 at once, in a thread each. Returns when all have.
void run_threads(unsigned n, const std::function<void(unsigned rank)>& body);

/// The same in a forked process each, which ends when its body returns. Empty, or which of them
/// ended otherwise and how.
std::string run_processes(unsigned n, const std::function<void(unsigned rank)>& body);

/// A process forked to run `body`; killed at the end if it still runs.
class Child {
 public:
  explicit Child(const std::function<void()>& body);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int pid() const { return pid_; }
  void kill();         ///< by SIGKILL; leaves a zombie until wait()
  std::string wait();  ///< empty if it ended with 0, else how it ended
  bool ended() const;  ///< without waiting; true also for a zombie

 private:
  int pid_;
  bool waited_ = false;
};

}  // namespace muster::test
