// SPDX-License-Identifier: BSD-3-Clause
// How a server learns of new clients and of its end: two words that its wait for requests includes.
//
// Invariants:
// 1. `clients` is more than the number of any client that has posted a request.
// 2. Whatever happens sets `news` afterwards; the server clears it before it looks.
// 3. Who is told to stop knows all requests that were posted before.
// 4. Who starts a server says so before it serves, and after the one before has left.
#pragma once

#include <vector>

#include "lock/shape.hpp"

namespace muster::locks {

/// Before a client's first request: executors look below `clients` only.
template <LockMachine M>
void raise_clients(M& m, typename M::Cell& clients, unsigned client) {
  Word seen = m.load(clients, relaxed);
  while (seen < client + 1) {
    if (m.compare_exchange(clients, seen, client + 1, relaxed)) return;
  }
}

template <LockMachine M>
class Reception {
 public:
  static constexpr unsigned cells = 4;

  /// Its cells are the global ones from `first` on.
  Reception(typename M::Cells all, unsigned first) : cells_(all), first_(first) {}

  auto& clients() const { return cells_.global(first_); }
  auto& news() const { return cells_.global(first_ + 1); }
  auto& serving() const { return cells_.global(first_ + 2); }
  auto& back() const { return cells_.global(first_ + 3); }  ///< StandBack's

  void enter(M& m, unsigned client) const {
    raise_clients(m, clients(), client);
    tell(m);
  }
  /// That there are news.
  void tell(M& m) const {
    m.exchange(news(), 1, release);  // pairs with hear's; no store: it would hide earlier ones
  }
  /// What a server waits for: request(client) of each, then the news.
  template <class RequestFn>  // M::Cell& request(unsigned client)
  std::vector<typename M::Cell*> watched(M& m, RequestFn&& request) const {
    std::vector<typename M::Cell*> all;
    const Word count = m.load(clients(), relaxed);
    for (unsigned client = 0; client < count; ++client) all.push_back(&request(client));
    all.push_back(&news());
    return all;
  }
  void start(M& m) const { m.store(serving(), 1, relaxed); }
  /// By the server, when there are news, before it looks what they are.
  void hear(M& m) const { m.exchange(news(), 0, acquire); }  // pairs with tell's

 private:
  typename M::Cells cells_;
  unsigned first_;
};

}  // namespace muster::locks
