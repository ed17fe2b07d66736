// SPDX-License-Identifier: BSD-3-Clause
#include "random_program.hpp"

namespace muster::check::test {
namespace {

constexpr const char* code_names[] = {
    "load",        "store",          "store_read", "add",   "exchange",   "compare_exchange",
    "await_equal", "await_at_least", "await_any",  "fence", "plain_read", "plain_write",
    "choose",      "skip_if"};
constexpr const char* order_names[] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"};

unsigned below(std::mt19937& random, std::size_t bound) {
  return static_cast<unsigned>(random() % bound);
}

MemoryOrder any_of(std::mt19937& random, const std::vector<MemoryOrder>& orders) {
  return orders[below(random, orders.size())];
}

Instruction make_instruction(const Taste& taste, const RandomProgram& program,
                             std::mt19937& random) {
  using enum MemoryOrder;
  Instruction i{taste.codes[below(random, taste.codes.size())]};
  i.location = below(random, program.atomics);
  i.value = 1 + below(random, 2);
  switch (i.code) {
    case Code::load:
    case Code::await_equal:
    case Code::await_at_least:
    case Code::await_any:
      i.order = any_of(random, {relaxed, acquire});
      break;
    case Code::store:
    case Code::store_read:
      i.order = any_of(random, {relaxed, release});
      break;
    case Code::add:
    case Code::exchange:
      i.order = any_of(random, {relaxed, acquire, release, acq_rel});
      break;
    case Code::compare_exchange:
      i.order = any_of(random, {relaxed, acquire, release, acq_rel});
      i.expected = below(random, 2);
      break;
    case Code::fence:
      i.order = any_of(random, taste.fence_orders);
      break;
    case Code::plain_read:
    case Code::plain_write:
      if (program.plains == 0)
        i.code = Code::choose;
      else
        i.location = program.atomics + below(random, program.plains);
      break;
    case Code::choose:
    case Code::skip_if:
      i.value = below(random, 2);
      break;
  }
  return i;
}

}  // namespace

RandomProgram make_random_program(const Taste& taste, std::mt19937& random) {
  RandomProgram program;
  program.atomics = 1 + below(random, taste.atomics_max);
  program.plains = below(random, taste.plains_max + 1);
  program.threads.resize(taste.threads_min +
                         below(random, taste.threads_max - taste.threads_min + 1));
  unsigned events = 0;
  for (auto& thread : program.threads) {
    for (unsigned n = 1 + below(random, taste.instructions_max); n > 0; --n) {
      if (++events > taste.events_max) break;
      thread.push_back(make_instruction(taste, program, random));
    }
  }
  return program;
}

std::string RandomProgram::text() const {
  std::string all;
  for (std::size_t t = 0; t < threads.size(); ++t) {
    for (const Instruction& i : threads[t]) {
      all += "thread " + std::to_string(t) + ": " + code_names[static_cast<int>(i.code)] + " " +
             order_names[static_cast<int>(i.order)] + " location " + std::to_string(i.location) +
             " value " + std::to_string(i.value) + " expected " + std::to_string(i.expected) + "\n";
    }
  }
  return all;
}

}  // namespace muster::check::test
