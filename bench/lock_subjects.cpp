// SPDX-License-Identifier: BSD-3-Clause
// The locks that are measured: ours, and those people use today, each as a C++ program has it.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#if MUSTER_BENCH_CK
#include "bench/ck_lock.hpp"
#endif
#include "bench/lock_slice.hpp"
#include "bench/lock_team.hpp"
#include "machine/error.hpp"
#include "machine/hardware.hpp"
#include "muster/lock.hpp"
#include "muster/mutex.hpp"

namespace muster::bench {
namespace {

using Word = std::uint32_t*;

/// The last CPU that this process may use: clients are bound from the first on.
int last_cpu() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  int cpu = CPU_SETSIZE - 1;
  while (cpu > 0 && !CPU_ISSET(cpu, &allowed)) --cpu;
  return cpu;
}

class Ours : public LockSubject {
 public:
  explicit Ours(const char* kind) {
    muster::server* server = nullptr;
    if (std::string_view(kind) == "rcl") server = new muster::server(std::to_string(last_cpu()));
    lock_ = new muster::lock(kind, server);  // both end with the process
  }
  void run(Slice& slice) override {
    slice.run(
        [&lock = *lock_](Word word, auto section) { lock.execute([=] { section(word); }); },
        [&lock = *lock_](Word word, auto section) { lock.execute_shared([=] { section(word); }); });
  }

 protected:
  muster::lock* lock_;
};

/// By a call, as a C program has it: `call` is muster_lock_execute, or muster_lock_post.
template <auto call>
class Called : public Ours {
 public:
  explicit Called(const char* kind) : Ours(kind) {}
  void run(Slice& slice) override {
    slice.run([lock = lock_->native_handle()]<class Section>(Word word, Section) {
      call(
          lock, [](void* at) { Section()(static_cast<Word>(at)); }, word);  // no allocation
    });
  }
};

/// Does not wait for what it posts; the ring bounds how many are outstanding.
class Posting final : public Called<muster_lock_post> {
 public:
  Posting() : Called("rcl") {}
  void settle() override {
    lock_->execute([] {});
  }
};

/// What servers are compared with: each client has a line, with a request there and its answer.
class BareServer final : public LockSubject {
 public:
  BareServer() : server_([this] { serve(); }) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(last_cpu(), &cpus);
    pthread_setaffinity_np(server_.native_handle(), sizeof cpus, &cpus);
  }
  ~BareServer() override {
    ends_ = true;
    ++active_;
    active_.notify_one();
    server_.join();
  }
  void run(Slice& slice) override {
    thread_local Request* const mine = &slots_[joined_++ % kSlots].request;
    if (active_++ == 0) active_.notify_one();
    slice.run([request = mine](Word word, auto) {
      request->store(word, std::memory_order_release);
      for (unsigned polls = 1; request->load(std::memory_order_acquire) != nullptr; ++polls) {
        pause(polls);
      }
    });
    --active_;
  }

 private:
  using Request = std::atomic<std::uint32_t*>;
  static constexpr unsigned kSlots = 4096;
  struct alignas(kLine) Slot {
    Request request{nullptr};
  };

  static void pause(unsigned polls) {
    if (polls % 1024 == 0) sched_yield();
    relax();
  }
  void serve() {
    while (!ends_) {
      active_.wait(0);
      for (unsigned polls = 1; active_.load(std::memory_order_relaxed) != 0 && !ends_; ++polls) {
        if (!serve_each()) pause(polls);
      }
    }
  }
  bool serve_each() {
    const unsigned clients = std::min(kSlots, joined_.load(std::memory_order_relaxed));
    bool found = false;
    for (unsigned client = 0; client < clients; ++client) {
      Request& request = slots_[client].request;
      std::uint32_t* const word = request.load(std::memory_order_acquire);
      if (word == nullptr) continue;
      Increment()(word);
      request.store(nullptr, std::memory_order_release);
      found = true;
    }
    return found;
  }

  std::vector<Slot> slots_{kSlots};
  alignas(kLine) std::atomic<unsigned> joined_{0};
  alignas(kLine) std::atomic<unsigned> active_{0};  ///< clients in a slice
  std::atomic<bool> ends_{false};
  std::thread server_;
};

class NoLock final : public LockSubject {
 public:
  void run(Slice& slice) override {
    slice.run([](Word word, auto section) { section(word); });
  }
};

class PthreadMutex final : public LockSubject {
 public:
  void run(Slice& slice) override {
    slice.run([this](Word word, auto section) {
      pthread_mutex_lock(&mutex_);
      section(word);
      pthread_mutex_unlock(&mutex_);
    });
  }

 private:
  alignas(kLine) pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class PthreadRwlock final : public LockSubject {
 public:
  void run(Slice& slice) override {
    slice.run(
        [this](Word word, auto section) {
          pthread_rwlock_wrlock(&lock_);
          section(word);
          pthread_rwlock_unlock(&lock_);
        },
        [this](Word word, auto section) {
          pthread_rwlock_rdlock(&lock_);
          section(word);
          pthread_rwlock_unlock(&lock_);
        });
  }

 private:
  alignas(kLine) pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
};

template <class Mutex>
class Guarded final : public LockSubject {
 public:
  void run(Slice& slice) override {
    const auto exclusive = [this](Word word, auto section) {
      const std::scoped_lock lock(mutex_);
      section(word);
    };
    if constexpr (requires { mutex_.lock_shared(); }) {
      slice.run(exclusive, [this](Word word, auto section) {
        const std::shared_lock lock(mutex_);
        section(word);
      });
    } else {
      slice.run(exclusive);
    }
  }

 private:
  alignas(kLine) Mutex mutex_;
};

template <class Subject>
std::unique_ptr<LockSubject> make(const std::string&) {
  return std::make_unique<Subject>();
}

/// `name`: a kind, then "-call".
std::unique_ptr<LockSubject> make_called(const std::string& name) {
  return std::make_unique<Called<muster_lock_execute>>(name.substr(0, name.find('-')).c_str());
}

std::unique_ptr<LockSubject> make_ours(const std::string& name) {
  return std::make_unique<Ours>(name.c_str());
}

#if MUSTER_BENCH_CK
constexpr const char* ck_package = "";

template <class Lock>
class Ck final : public LockSubject {
 public:
  void run(Slice& slice) override {
    thread_local typename Lock::Local local{};
    slice.run([this, &mine = local](Word word, auto section) {
      lock_.lock(mine);
      section(word);
      lock_.unlock(mine);
    });
  }

 private:
  Lock lock_;
};

constexpr auto ck_fas = make<Ck<CkFas>>;
constexpr auto ck_ticket = make<Ck<CkTicket>>;
constexpr auto ck_mcs = make<Ck<CkMcs>>;
constexpr auto ck_clh = make<Ck<CkClh>>;
constexpr auto ck_cohort = make<Ck<CkCohort>>;
constexpr auto ck_rwlock = make<Guarded<CkRwlock>>;
constexpr auto ck_pflock = make<Guarded<CkPflock>>;
#else
constexpr const char* ck_package = "libck-dev";
constexpr std::unique_ptr<LockSubject> (*ck_fas)(const std::string&) = nullptr;
constexpr auto ck_ticket = ck_fas;
constexpr auto ck_mcs = ck_fas;
constexpr auto ck_clh = ck_fas;
constexpr auto ck_cohort = ck_fas;
constexpr auto ck_rwlock = ck_fas;
constexpr auto ck_pflock = ck_fas;
#endif

}  // namespace

const std::vector<LockEntry>& lock_entries() {
  static const std::vector<LockEntry> entries = [] {
    std::vector<LockEntry> all;
    for (const char* const* name = muster_lock_names(); *name != nullptr; ++name) {
      const bool is_c_librarys = std::string_view(*name) == "pthread-mutex";
      all.push_back({*name, LockEntry::ours, "",
                     is_c_librarys ? "pthread_mutex through muster_lock_execute" : "", make_ours});
    }
    all.push_back({"auto-call", LockEntry::ours, "",
                   "auto by muster_lock_execute() as in C, which C++ has in line", make_called});
    all.push_back({"auto-guard", LockEntry::ours, "",
                   "auto by lock() and unlock(): the calling thread has it, others wait",
                   make<Guarded<muster::lock>>});
    all.push_back({"rcl-call", LockEntry::ours, "",
                   "rcl by muster_lock_execute() as in C, with a word as its argument",
                   make_called});
    all.push_back({"rcl-post", LockEntry::ours, "",
                   "rcl without waiting: up to 16 requests of a thread outstanding",
                   make<Posting>});
    all.push_back({"muster::mutex", LockEntry::ours, "", "cna in the calling thread, not delegated",
                   make<Guarded<muster::mutex>>});
    all.push_back({"pthread_mutex", LockEntry::peer, "", "the C library's", make<PthreadMutex>});
    all.push_back({"std::mutex", LockEntry::peer, "", "libstdc++'s", make<Guarded<std::mutex>>});
    all.push_back({"ck-fas", LockEntry::peer, ck_package, "ConcurrencyKit's", ck_fas});
    all.push_back({"ck-ticket", LockEntry::peer, ck_package, "ConcurrencyKit's", ck_ticket});
    all.push_back({"ck-mcs", LockEntry::peer, ck_package, "ConcurrencyKit's", ck_mcs});
    all.push_back({"ck-clh", LockEntry::peer, ck_package, "ConcurrencyKit's", ck_clh});
    all.push_back({"ck-cohort", LockEntry::peer, ck_package, "ConcurrencyKit's", ck_cohort});
    all.push_back({"pthread_rwlock", LockEntry::peer, "", "the C library's, with readers",
                   make<PthreadRwlock>, true});
    all.push_back({"shared_mutex", LockEntry::peer, "", "libstdc++'s, with readers",
                   make<Guarded<std::shared_mutex>>, true});
    all.push_back({"ck-rwlock", LockEntry::peer, ck_package, "ConcurrencyKit's, with readers",
                   ck_rwlock, true});
    all.push_back(
        {"ck-pflock", LockEntry::peer, ck_package, "ConcurrencyKit's phase-fair", ck_pflock, true});
    all.push_back(
        {"rcl-limit", LockEntry::reference, "",
         "a request and its answer on one line, nothing else, for comparison with servers",
         make<BareServer>});
    all.push_back({"none", LockEntry::reference, "", "no lock: increments get lost", make<NoLock>});
    return all;
  }();
  return entries;
}

}  // namespace muster::bench
