// SPDX-License-Identifier: BSD-3-Clause
// How long a lock's clients wait, and how evenly its sections are spread over them, in a window of
// time. Sections count that end in it, each with all of its latency: from the call until it is
// done. Who waits when the window ends counts with the time until then: nobody starves unseen.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/time.hpp"

namespace muster::sim {

struct LockWaits {
  double mean_ns = 0;
  double p99_ns = 0;  ///< less by 1 % at most
  double longest_ns = 0;
  double most_to_fewest = 0;  ///< sections of the busiest client; infinite: one had none
};

class LockWaitsRecorder {
 public:
  explicit LockWaitsRecorder(std::size_t clients) : clients_(clients) {}

  void call(unsigned client, Time now) { clients_.at(client).since = now; }
  void done(unsigned client, Time now) {
    if (is_open_) {
      add(now - *clients_.at(client).since);
      ++clients_[client].sections;
    }
    clients_[client].since.reset();
  }
  void open() { is_open_ = true; }
  void close(Time now) {
    is_open_ = false;
    for (const Client& each : clients_) {
      if (each.since && *each.since < now) add(now - *each.since);  // else it calls later
    }
  }

  /// After close().
  LockWaits result() const {
    if (count_ == 0) return {};
    std::uint64_t up_to = 0;
    auto p99 = times_.begin();
    while ((up_to += p99->second) * 100 < count_ * 99) ++p99;
    const auto [fewest, most] = std::minmax_element(
        clients_.begin(), clients_.end(),
        [](const Client& a, const Client& b) { return a.sections < b.sections; });
    return {to_ns(sum_) / static_cast<double>(count_), to_ns(p99->first), to_ns(longest_),
            static_cast<double>(most->sections) / static_cast<double>(fewest->sections)};
  }

 private:
  struct Client {
    std::optional<Time> since;  ///< it waits
    std::uint64_t sections = 0;
  };
  void add(Time time) {
    const int dropped =
        std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(time))) - 8);
    ++times_[time >> dropped << dropped];
    longest_ = std::max(longest_, time);
    sum_ += time;
    ++count_;
  }

  std::vector<Client> clients_;
  bool is_open_ = false;
  std::map<Time, std::uint64_t> times_;  ///< how many took so long, by the leading digits
  Time longest_ = 0;
  Time sum_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace muster::sim
