// SPDX-License-Identifier: BSD-3-Clause
// All ways in and out of sections and barriers, compiled with ThreadSanitizer against a library
// without: it has nothing to report, unless the argument is "unguarded".
#include <muster/lock.hpp>
#include <muster/muster.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Data {
  long count = 0;
  std::string text;
};

void use(muster::lock& lock, Data& data) {
  for (int i = 0; i < 500; ++i) {
    data.text = lock.execute([&] {
      ++data.count;
      return std::string(32, 'x');
    });
    lock.post([&data, copy = std::string(32, 'y')] { data.count += copy.size() == 32 ? 1 : 0; });
    if (i % 50 != 0) continue;
    auto later = lock.async([&] { return std::to_string(++data.count); });
    if (later.get().empty()) std::abort();
    try {
      lock.execute([] { throw std::runtime_error("reaches the caller"); });
      std::abort();
    } catch (const std::runtime_error&) {
    }
  }
}

bool is_counted(muster::lock& lock) {
  muster::condition changed(lock);
  Data data[3];
  long sum = 0;
  int done = 0;
  std::vector<std::thread> threads;
  for (Data& mine : data) {
    threads.emplace_back([&] {
      use(lock, mine);
      lock.execute([&] {
        sum += mine.count;
        ++done;
        changed.notify_all();
      });
    });
  }
  lock.execute([&] {
    changed.wait([&] { return done > 0; });
    while (done < 3) changed.wait_for(std::chrono::milliseconds(5));
  });
  for (std::thread& thread : threads) thread.join();
  return sum == 3 * 1010;
}

/// Each writes its own, and reads everybody's.
bool meet() {
  constexpr int threads = 3;
  constexpr int episodes = 200;
  long written[threads] = {};
  long completed = 0;
  bool good[threads] = {};
  const auto complete = [&] {
    completed += static_cast<long>(std::count(written, written + threads, written[0])) / threads;
  };
  muster_options options;
  muster_options_init(&options);
  options.flags = MUSTER_SPLIT;
  muster::barrier<decltype(complete)> barrier(threads, complete);
  muster::barrier<> split(threads, {}, &options);
  std::vector<std::thread> all;
  for (int rank = 0; rank < threads; ++rank) {
    all.emplace_back([&, rank] {
      good[rank] = true;
      for (int episode = 1; episode <= episodes; ++episode) {
        written[rank] = episode;
        barrier.arrive_and_wait();
        good[rank] = good[rank] && completed == episode &&
                     std::count(written, written + threads, episode) == threads;
        split.wait(split.arrive());
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  return std::count(good, good + threads, true) == threads;
}

// The last of its users destroys an object with its lock.
struct Shared {
  muster::lock lock;
  int users;
};
bool is_destroyed(const muster::lock_options& options) {
  constexpr int users = 4;
  std::vector<std::atomic<Shared*>> all(300);
  std::atomic<std::size_t> destroyed{0};
  std::vector<std::thread> threads;
  for (int user = 0; user < users; ++user) {
    threads.emplace_back([&, user] {
      for (std::atomic<Shared*>& shared : all) {
        if (user == 0) shared = new Shared{muster::lock(options), users};
        while (shared == nullptr) std::this_thread::yield();
        Shared* const object = shared;
        if (!object->lock.execute([object] { return --object->users == 0; })) continue;
        delete object;
        ++destroyed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return destroyed == all.size();
}

void race() {
  long count = 0;
  muster::lock lock;
  std::thread other([&] { lock.execute([&] { ++count; }); });
  ++count;
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "unguarded") == 0) race();
  muster::server server;
  bool good = meet();
  for (const muster::lock_options options :
       {muster::lock_options{"auto", nullptr}, muster::lock_options{"auto", &server},
        muster::lock_options{"rcl", &server}, muster::lock_options{"mcs", nullptr},
        muster::lock_options{
            .kind = "rcl", .of = &server, .share = std::chrono::milliseconds(2)}}) {
    muster::lock lock(options);
    good = is_counted(lock) && is_destroyed(options) && good;
  }
  long posted = 0;
  {
    muster::lock last("rcl", &server);
    for (int i = 0; i < 10; ++i) last.post([&] { ++posted; });
  }
  return good && posted == 10 ? 0 : 1;
}
