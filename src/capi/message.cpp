// SPDX-License-Identifier: BSD-3-Clause
// The barriers over messages [K22] for C: their text runs over the caller's send and receive.
#include <cstring>
#include <vector>

#include "barrier/base_barriers.hpp"
#include "machine/hardware.hpp"
#include "machine/made_once.hpp"
#include "muster/muster.h"

namespace muster {
namespace {

/// A machine whose only means are the caller's messages. It is hardware by name alone: no cell of
/// it is ever touched.
class Postal : public Hardware {
 public:
  explicit Postal(const muster_messages& messages) noexcept
      : Hardware(nowhere_), messages_(&messages) {}

  void send(unsigned to) {
    if (error_ == 0) error_ = messages_->send(messages_->context, to);
  }
  bool send_synchronously(unsigned to) {
    if (error_ == 0) error_ = messages_->send_synchronously(messages_->context, to);
    return error_ == 0;
  }
  bool receive(unsigned from) {
    if (error_ == 0) error_ = messages_->receive(messages_->context, from);
    return error_ == 0;
  }
  bool receive_any(unsigned count) {
    if (error_ == 0 && count > 0) error_ = messages_->receive_any(messages_->context, count);
    return error_ == 0;
  }
  int error() const { return error_; }

 private:
  static inline Domain nowhere_{};
  const muster_messages* messages_;
  int error_ = 0;
};

}  // namespace

template <>
class Mailboxes<Postal> {
 public:
  struct Traffic {
    unsigned rank;
  };

  static constexpr unsigned cells_per_rank(unsigned) { return 0; }
  Mailboxes(unsigned ranks, Word, const Postal::Cells&) : ranks_(ranks) {}
  void prepare(Postal&) const {}
  Traffic traffic(unsigned rank) const { return {rank}; }
  void send(Postal& m, Traffic&, unsigned to) const { m.send(to); }
  bool send_synchronously(Postal& m, Traffic&, unsigned to) const {
    return m.send_synchronously(to);
  }
  bool receive(Postal& m, Traffic&, unsigned from) const { return m.receive(from); }
  /// Whoever sends messages synchronously confirms them itself.
  bool receive_and_confirm(Postal& m, Traffic&, unsigned from) const { return m.receive(from); }
  bool receive_from_others(Postal& m, Traffic&) const { return m.receive_any(ranks_ - 1); }

 private:
  unsigned ranks_;
};

namespace {

template <class B>
int run(const muster_messages* messages, unsigned rank, unsigned participants) {
  Shape shape;
  shape.participants = participants;
  Postal port(*messages);
  const B barrier(shape, {});
  auto ticket = barrier.ticket(rank);
  barrier.wait(port, ticket);
  return port.error();
}

struct Named {
  std::vector<const char*> names;  // and a null
  std::vector<muster_message_barrier> barriers;
};

const Named& all() {
  static constinit MadeOnce<Named> named;
  return named.get([] {
    Named list;
    for_each_base_barrier<Postal>([&]<class B>() {
      list.names.push_back(B::traits.name.data());  // a literal
      list.barriers.push_back(run<B>);
    });
    list.names.push_back(nullptr);
    return list;
  });
}

}  // namespace
}  // namespace muster

const char* const* muster_message_barrier_names(void) { return muster::all().names.data(); }

muster_message_barrier muster_message_barrier_named(const char* name) {
  const muster::Named& known = muster::all();
  for (std::size_t i = 0; name != nullptr && i < known.barriers.size(); ++i) {
    if (std::strcmp(known.names[i], name) == 0) return known.barriers[i];
  }
  return nullptr;
}
