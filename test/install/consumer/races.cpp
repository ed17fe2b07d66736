// SPDX-License-Identifier: BSD-3-Clause
// All ways in and out of sections, compiled with ThreadSanitizer against a library without: it has
// nothing to report, unless the argument is "unguarded".
#include <muster/lock.hpp>

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
  bool good = true;
  for (const muster::lock_options options :
       {muster::lock_options{"auto", nullptr}, muster::lock_options{"auto", &server},
        muster::lock_options{"rcl", &server}, muster::lock_options{"mcs", nullptr}}) {
    muster::lock lock(options);
    good = is_counted(lock) && good;
  }
  long posted = 0;
  {
    muster::lock last("rcl", &server);
    for (int i = 0; i < 10; ++i) last.post([&] { ++posted; });
  }
  return good && posted == 10 ? 0 : 1;
}
