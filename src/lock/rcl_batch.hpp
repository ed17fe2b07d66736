// SPDX-License-Identifier: BSD-3-Clause
// Remote Core Locking with batched responses. The server answers a group of clients with one word:
// a bit for each, which toggles when its request is executed. So it writes one line for all that it
// has executed in a group, where rcl writes one for each.
//
// Cost: a line transfer for each request, and one for the response to a whole group.
// Source: Roghanchi, Eriksson and Basu, SOSP 2017 (ffwd); there a request toggles as well, here the
// server clears it, so that waiting for requests is one operation.
//
// Invariants:
// 1. One server at a time executes requests, clears them and writes responses. Without one they
//    wait for the next.
// 2. A client's bit differs from its ticket's if and only if its request is not executed yet.
#pragma once

#include <vector>

#include "lock/reception.hpp"

namespace muster::locks {

template <LockMachine M>
class RclBatch {
 public:
  static constexpr Traits traits{"rcl-batch", Style::server, true, "one, and one for each group",
                                 "Roghanchi, Eriksson and Basu 2017 (ffwd)"};
  static constexpr unsigned group_size = 32;

  struct Ticket {
    unsigned client;
    Word toggle = 0;  ///< the client's bit or 0: what the response has when it is answered
    bool entered = false;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = Reception<M>::cells + (shape.clients + group_size - 1) / group_size,
            .slots = shape.clients,
            .cells_per_slot = 1};
  }
  RclBatch(const Shape&, typename M::Cells cells) : cells_(cells), reception_(cells, 0) {}
  Ticket ticket(unsigned client) const { return {.client = client}; }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    if (!t.entered) reception_.enter(m, t.client);
    t.entered = true;
    auto& answer = response(t.client / group_size);
    const Word bit = bit_of(t.client);
    t.toggle ^= bit;
    work.put(m, t.client);
    m.store(request(t.client), 1, release);  // pairs with pass's load
    work.posted(m);
    return m.await(answer, Answered{bit, t.toggle}, acquire);  // pairs with pass's store
  }

  /// Serves until told to stop, then executes what it finds. False if it gave up.
  template <class Work>
  bool serve(M& m, Work& work) const {
    do {
      const auto watched = reception_.watched(
          m, [this](unsigned client) -> auto& { return request(client); });
      const auto count = static_cast<unsigned>(watched.size() - 1);
      for (;;) {
        const std::size_t at = m.await_any(watched, at_least(1), relaxed);  // pass acquires
        if (at == no_cell) return false;
        if (at == count) break;
        pass(m, count, work);
      }
    } while (reception_.next(m));
    pass(m, m.load(reception_.clients(), relaxed), work);  // also of those that these news told of
    return true;
  }

  /// By who starts a server; and by anybody, while it serves.
  void start(M& m) const { reception_.start(m); }
  void stop(M& m) const { reception_.stop(m); }

 private:
  struct Answered {
    Word bit;
    Word toggle;
    bool operator()(Word seen) const { return (seen & bit) == toggle; }
  };

  static Word bit_of(unsigned client) { return Word{1} << client % group_size; }

  template <class Work>
  void pass(M& m, unsigned count, Work& work) const {
    for (unsigned group = 0; group * group_size < count; ++group) {
      Word answers = 0;
      for (unsigned c = group * group_size; c < count && c < (group + 1) * group_size; ++c) {
        if (m.load(request(c), acquire) == 0) continue;  // pairs with the client's store
        m.store(request(c), 0, relaxed);  // before the response, after which it may be set again
        work.run(m, c);
        answers |= bit_of(c);
      }
      const Word before = m.load(response(group), relaxed);
      if (answers != 0) m.store(response(group), before ^ answers, release);  // pairs with awaits
    }
  }

  auto& response(unsigned group) const { return cells_.global(Reception<M>::cells + group); }
  auto& request(unsigned client) const { return cells_.of(client, 0); }

  typename M::Cells cells_;
  Reception<M> reception_;
};

}  // namespace muster::locks
