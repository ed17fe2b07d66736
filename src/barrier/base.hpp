// SPDX-License-Identifier: BSD-3-Clause
// What the barriers over messages have in common, and their list. They are what an MPI runs when it
// has nothing better: [K22] compares with them under these names. Not among the registered ones
// (registry.hpp): nobody should choose them; they are there to be compared with, on hardware and in
// the model.
#pragma once

#include "barrier/shape.hpp"
#include "message/mailboxes.hpp"

namespace muster {

template <Machine M>
class OverMessages {
 public:
  using Ticket = typename Mailboxes<M>::Traffic;

  static Layout layout(const Shape& shape) {
    return {.global_cells = 0, .cells_per_rank = Mailboxes<M>::cells_per_rank(shape.participants)};
  }

  OverMessages(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants),
        mailboxes_(shape.participants, shape.first_episode, cells) {}

  void prepare(M& m) const { mailboxes_.prepare(m); }
  Ticket ticket(unsigned rank) const { return mailboxes_.traffic(rank); }

 protected:
  void send(M& m, Ticket& t, unsigned to) const { mailboxes_.send(m, t, to); }
  bool send_synchronously(M& m, Ticket& t, unsigned to) const {
    return mailboxes_.send_synchronously(m, t, to);
  }
  bool receive(M& m, Ticket& t, unsigned from) const { return mailboxes_.receive(m, t, from); }
  bool receive_and_confirm(M& m, Ticket& t, unsigned from) const {
    return mailboxes_.receive_and_confirm(m, t, from);
  }
  bool receive_from_others(M& m, Ticket& t) const { return mailboxes_.receive_from_others(m, t); }

  unsigned participants_;

 private:
  Mailboxes<M> mailboxes_;
};

}  // namespace muster
