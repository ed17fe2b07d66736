// SPDX-License-Identifier: BSD-3-Clause
// What doc/delegation.md shows in C++: calls, a hash table, and a queue with a condition.
#include <cstdio>
#include <deque>
#include <muster/lock.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

class Counts {
 public:
  unsigned long add(const std::string& word) {
    return table_.execute([&](auto& table) { return ++table[word]; });
  }

 private:
  muster::guarded<std::unordered_map<std::string, unsigned long>> table_;  // was: and a std::mutex
};

class Queue {
 public:
  void push(int value) {
    lock_.execute([&] {
      items_.push_back(value);
      filled_.notify_one();
    });
  }
  int pop() {
    return lock_.execute([this] {
      filled_.wait([this] { return !items_.empty(); });
      const int value = items_.front();
      items_.pop_front();
      return value;
    });
  }

 private:
  std::deque<int> items_;
  muster::lock lock_;
  muster::condition filled_{lock_};
};

bool calls_are_right() {
  int n = 0;

  muster::lock lock;
  const int next = lock.execute([&] { return ++n; });  // its result, or what it throws
  lock.post([&] { ++n; });                             // a copy is executed some time
  auto later = lock.async([&] { return ++n; });        // later.get()

  const int last = later.get();
  std::printf("calls: %d, %d\n", next, last);
  return next == 1 && last == 3;
}

bool cold_sections_stay() {
  int n = 0;

  muster::lock lock;
  lock.execute([&] { ++n; });  // hot: a call
  {
    const std::lock_guard guard(lock);  // cold: as it was
    n = 0;
  }

  return lock.try_execute([&] { return ++n; }) == 1;
}

constexpr int threads = 2;
constexpr int each = 1000;

bool table_is_right() {
  Counts counts;
  std::vector<std::thread> clients;
  for (int t = 0; t < threads; ++t) {
    clients.emplace_back([&] {
      for (int i = 0; i < each; ++i) counts.add(i % 2 == 0 ? "even" : "odd");
    });
  }
  for (std::thread& client : clients) client.join();
  const unsigned long even = counts.add("even");
  std::printf("table: %lu\n", even);
  return even == threads * each / 2 + 1;
}

bool queue_is_right() {
  Queue queue;
  std::vector<std::thread> producers;
  for (int p = 0; p < threads; ++p) {
    producers.emplace_back([&] {
      for (int i = 1; i <= each; ++i) queue.push(i);
    });
  }
  long sum = 0;
  for (int i = 0; i < threads * each; ++i) sum += queue.pop();
  for (std::thread& producer : producers) producer.join();
  std::printf("queue: %ld\n", sum);
  return sum == static_cast<long>(threads) * each * (each + 1) / 2;
}

}  // namespace

int main() {
  return calls_are_right() && cold_sections_stay() && table_is_right() && queue_is_right() ? 0 : 1;
}
