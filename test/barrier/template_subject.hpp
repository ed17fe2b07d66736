// SPDX-License-Identifier: BSD-3-Clause
// A barrier template over a machine under test, with its cells in memory that processes can share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "barrier/registry.hpp"
#include "machine/hardware.hpp"
#include "trial.hpp"

namespace muster::test {

/// `B` is a barrier over `M`, and `M` is Hardware or a wrapper that is constructed like it.
template <class B, class M>
class TemplateSubject : public Subject {
 public:
  TemplateSubject(const Shape& shape, const WaitPolicy& policy, std::int64_t limit_ns)
      : participants_(shape.participants),
        limit_ns_(limit_ns),
        layout_(B::layout(shape)),
        memory_((1 + layout_.global_cells + std::size_t{shape.participants} * lines_per_rank()) *
                    line_bytes +
                layout_.words * sizeof(Word)),
        domain_(*reinterpret_cast<Hardware::Domain*>(memory_.data())),
        barrier_(shape, cells()) {
    if (shape.first_episode != 0) {
      M port(domain_, 0, policy, true);
      barrier_.prepare(port);
    }
    for (unsigned rank = 0; rank < participants_; ++rank) {
      seats_.push_back(
          std::make_unique<Seat>(M(domain_, rank, policy, true), barrier_.ticket(rank)));
    }
  }

  unsigned participants() const override { return participants_; }
  std::string describe() const override {
    return std::string(B::traits.name) + " of " + std::to_string(participants_);
  }

  std::string wait(unsigned rank, Random&) override {
    Seat& seat = *seats_[rank];
    seat.port.set_deadline(now_ns() + limit_ns_);
    if (barrier_.wait(seat.port, seat.ticket)) {
      after_wait(seat.ticket);
      return "";
    }
    const Breakage why = seat.port.breakage();
    return "gave up, since rank " + std::to_string(why.rank) +
           (why.cause == Status::timeout ? " ran out of patience" : " broke the barrier");
  }

  typename B::Ticket& ticket(unsigned rank) { return seats_[rank]->ticket; }
  M& port(unsigned rank) { return seats_[rank]->port; }
  Hardware::Domain& domain() { return domain_; }

 protected:
  /// For mutants of what a rank remembers.
  virtual void after_wait(typename B::Ticket&) {}

 private:
  static constexpr std::size_t line_bytes = 128;

  struct Seat {
    Seat(M machine, typename B::Ticket first)
        : port(std::move(machine)), ticket(std::move(first)) {}
    M port;
    typename B::Ticket ticket;
  };

  std::size_t lines_per_rank() const { return std::max(1U, layout_.cells_per_rank); }

  Hardware::Cells cells() const {
    std::byte* const global = memory_.data() + line_bytes;
    std::byte* const ranks = global + layout_.global_cells * line_bytes;
    const std::size_t stride = lines_per_rank() * line_bytes;
    return {global, ranks, line_bytes, stride, 0, ranks + participants_ * stride};
  }

  unsigned participants_;
  std::int64_t limit_ns_;
  Layout layout_;
  SharedMemory memory_;
  Hardware::Domain& domain_;
  B barrier_;
  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace muster::test
