// SPDX-License-Identifier: BSD-3-Clause
// The references and the peers that run in our own processes.
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <cstring>

#if MUSTER_BENCH_CK
#include "bench/ck.h"
#endif
#include "bench/contestant.hpp"
#include "machine/error.hpp"
#include "machine/hardware.hpp"

namespace muster::bench {
namespace {

/// Wraps what has a `wait(rank)`, so that the measured loop calls it directly.
template <class Barrier>
class Simple final : public Contestant {
 public:
  explicit Simple(const Setting& setting) : barrier_(setting) {}
  void serve(Participant& participant, unsigned rank) override {
    auto local = barrier_.join(rank);
    participant.serve([&] { barrier_.wait(local); });
  }

 private:
  Barrier barrier_;
};

template <class Barrier>
std::unique_ptr<Contestant> make(const Setting& setting) {
  return std::make_unique<Simple<Barrier>>(setting);
}

struct alignas(kLine) Flag {
  std::atomic<std::uint32_t> value;
};

void await(const Flag& flag, std::uint32_t wanted) {
  while (flag.value.load(std::memory_order_acquire) != wanted) relax();
}

/// An exchange of two flags: each tells the other, both at once, and waits for one line transfer.
/// No chain is shorter, but that is no bound on time: where transfers are slow, one line that both
/// use (ck-centralized) has been seen faster. Two pairs of flags alternate (parity), so that none
/// is reset; the sense reverses when a pair comes round.
class Limit {
 public:
  explicit Limit(const Setting&) : flags_(4) {}

  struct Local {
    unsigned rank;
    unsigned parity;
    std::uint32_t sense;
  };
  Local join(unsigned rank) { return {rank, 0, 1}; }

  void wait(Local& t) {
    Flag* const pair = &flags_[2 * t.parity];
    pair[1 - t.rank].value.store(t.sense, std::memory_order_release);
    await(pair[t.rank], t.sense);
    t.sense ^= t.parity;
    t.parity ^= 1;
  }

 private:
  SharedArray<Flag> flags_;
};

/// A round trip: rank 1 answers rank 0. What a line transfer costs here today is half of it.
class PingPong {
 public:
  explicit PingPong(const Setting&) : flags_(2) {}

  struct Local {
    unsigned rank;
    std::uint32_t turn;
  };
  Local join(unsigned rank) { return {rank, 0}; }

  void wait(Local& t) {
    ++t.turn;
    if (t.rank == 0) {
      flags_[0].value.store(t.turn, std::memory_order_release);
      await(flags_[1], t.turn);
    } else {
      await(flags_[0], t.turn);
      flags_[1].value.store(t.turn, std::memory_order_release);
    }
  }

 private:
  SharedArray<Flag> flags_;
};

class Pthread {
 public:
  explicit Pthread(const Setting& setting) : barrier_(1) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    if (setting.mode == Mode::processes) {
      pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    }
    const int error = pthread_barrier_init(&barrier_[0], &attributes, setting.participants);
    pthread_barrierattr_destroy(&attributes);
    if (error != 0) {
      throw Error(Status::system, std::string("pthread_barrier_init: ") + std::strerror(error));
    }
  }
  pthread_barrier_t* join(unsigned) { return &barrier_[0]; }
  void wait(pthread_barrier_t* barrier) { pthread_barrier_wait(barrier); }

 private:
  SharedArray<pthread_barrier_t> barrier_;
};

class Std {
 public:
  explicit Std(const Setting& setting)
      : barrier_(static_cast<std::ptrdiff_t>(setting.participants)) {}
  std::barrier<>* join(unsigned) { return &barrier_; }
  void wait(std::barrier<>* barrier) { barrier->arrive_and_wait(); }

 private:
  std::barrier<> barrier_;
};

/// For the tests of what happens to a barrier that hangs: rank 0 stops coming after some episodes.
class Stuck {
 public:
  explicit Stuck(const Setting& setting) : inner_(setting) {}

  struct Local {
    Limit::Local inner;
    unsigned left;
  };
  Local join(unsigned rank) { return {inner_.join(rank), 100}; }

  void wait(Local& t) {
    while (t.left == 0) relax();
    --t.left;
    inner_.wait(t.inner);
  }

 private:
  Limit inner_;
};

/// For the tests of what happens when a participant dies.
class Crash {
 public:
  explicit Crash(const Setting&) {}
  unsigned join(unsigned rank) { return rank; }
  void wait(unsigned rank) {
    if (rank == 1) raise(SIGKILL);
    for (;;) relax();
  }
};

#if MUSTER_BENCH_CK
constexpr std::string_view ck_package;

template <bench_ck_kind Kind, void (*Wait)(bench_ck_local*)>
class Ck {
 public:
  explicit Ck(const Setting& setting) : barrier_(bench_ck_make(Kind, setting.participants)) {
    if (barrier_ == nullptr)
      throw Error(Status::no_memory, "no memory for ConcurrencyKit's barrier");
  }
  bench_ck_local* join(unsigned rank) { return bench_ck_join(barrier_, rank); }
  void wait(bench_ck_local* local) { Wait(local); }

 private:
  bench_ck* barrier_;
};

constexpr Maker ck_centralized = make<Ck<BENCH_CK_CENTRALIZED, bench_ck_wait_centralized>>;
constexpr Maker ck_combining = make<Ck<BENCH_CK_COMBINING, bench_ck_wait_combining>>;
constexpr Maker ck_dissemination = make<Ck<BENCH_CK_DISSEMINATION, bench_ck_wait_dissemination>>;
constexpr Maker ck_mcs = make<Ck<BENCH_CK_MCS, bench_ck_wait_mcs>>;
constexpr Maker ck_tournament = make<Ck<BENCH_CK_TOURNAMENT, bench_ck_wait_tournament>>;
#else
constexpr std::string_view ck_package = "libck-dev";
constexpr Maker ck_centralized = nullptr;
constexpr Maker ck_combining = nullptr;
constexpr Maker ck_dissemination = nullptr;
constexpr Maker ck_mcs = nullptr;
constexpr Maker ck_tournament = nullptr;
#endif

}  // namespace

const std::vector<Other>& others() {
  // clang-format off
  static const std::vector<Other> all = {
      {"limit", Other::reference, true, true, 2, make<Limit>, "", "",
       "two participants exchange two flags, both at once: a chain of one line transfer"},
      {"ping-pong", Other::reference, true, true, 2, make<PingPong>, "", "",
       "a round trip of one flag, two line transfers: what this machine's lines cost now"},
      {"pthread_barrier", Other::peer, true, true, 0, make<Pthread>, "", "",
       "the C library's; PTHREAD_PROCESS_SHARED between processes"},
      {"std::barrier", Other::peer, true, false, 0, make<Std>, "", "",
       "libstdc++'s, arrive_and_wait()"},
      {"libgomp", Other::peer, true, false, 0, nullptr, "muster-bench-libgomp",
       MUSTER_BENCH_LIBGOMP_MISSING,
       "GCC's `#pragma omp barrier`; OMP_WAIT_POLICY=active with a CPU each, else its default"},
      {"libomp", Other::peer, true, false, 0, nullptr, "muster-bench-libomp",
       MUSTER_BENCH_LIBOMP_MISSING,
       "LLVM's `#pragma omp barrier`; OMP_WAIT_POLICY=active with a CPU each, else its default"},
      {"python", Other::peer, false, true, 0, nullptr, "muster-bench-python",
       MUSTER_BENCH_PYTHON_MISSING, "Python's multiprocessing.Barrier"},
      {"ck-centralized", Other::peer, true, true, 0, ck_centralized, "", ck_package,
       "ConcurrencyKit's; never gives up the CPU, like the other four"},
      {"ck-combining", Other::peer, true, false, 0, ck_combining, "", ck_package,
       "ConcurrencyKit's, groups of two"},
      {"ck-dissemination", Other::peer, true, false, 0, ck_dissemination, "", ck_package,
       "ConcurrencyKit's"},
      {"ck-mcs", Other::peer, true, false, 0, ck_mcs, "", ck_package,
       "ConcurrencyKit's"},
      {"ck-tournament", Other::peer, true, false, 0, ck_tournament, "", ck_package,
       "ConcurrencyKit's"},
      {"test-stuck", Other::hidden, true, true, 2, make<Stuck>, "", "", "hangs after 100 episodes"},
      {"test-crash", Other::hidden, true, true, 2, make<Crash>, "", "",
       "a participant kills itself"},
  };
  // clang-format on
  return all;
}

}  // namespace muster::bench
