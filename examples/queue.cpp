// SPDX-License-Identifier: BSD-3-Clause
// A blocking queue whose operations are sections of a lock, executed by a server: producers,
// consumers, a condition, results, and an asynchronous call.
#include <cstdio>
#include <deque>
#include <muster/lock.hpp>
#include <thread>
#include <vector>

class Queue {
 public:
  explicit Queue(muster::server& server) : lock_("rcl", &server) {}

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
  muster::future<std::size_t> size() {
    return lock_.async([this] { return items_.size(); });
  }

 private:
  std::deque<int> items_;
  muster::lock lock_;
  muster::condition filled_{lock_};
};

int main() {
  muster::server server;
  Queue queue(server);
  constexpr int each = 1000;
  long long sum = 0;
  std::vector<std::thread> producers;
  for (int p = 0; p < 2; ++p) {
    producers.emplace_back([&] {
      for (int i = 1; i <= each; ++i) queue.push(i);
    });
  }
  for (int i = 0; i < 2 * each; ++i) sum += queue.pop();
  for (std::thread& producer : producers) producer.join();
  std::printf("sum %lld, %zu left\n%s", sum, queue.size().get(), server.explain().c_str());
  return sum == 1LL * each * (each + 1) ? 0 : 1;
}
