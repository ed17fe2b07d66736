// SPDX-License-Identifier: BSD-3-Clause
// The barriers over messages on real threads and processes, by the one test for every barrier.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "barrier/base_barriers.hpp"
#include "template_subject.hpp"

namespace muster::test {
namespace {

template <class B>
class OverMessagesTest : public testing::Test {};

using All =
    testing::Types<BaseLinear<Hardware>, BaseDoubleRing<Hardware>, BaseRecursiveDoubling<Hardware>,
                   BaseBruck<Hardware>, BaseTree<Hardware>>;
TYPED_TEST_SUITE(OverMessagesTest, All);

template <class B>
void run(bool processes) {
  Random random(case_seed());
  for (const unsigned participants : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 13U, 16U, 17U}) {
    if (reduced && participants > 8) continue;
    const HangGuard guard(60, std::string(B::traits.name));
    const Shape shape{.participants = participants,
                      .first_episode = random.one_in(2) ? Word(-8) : Word(0)};
    TemplateSubject<B, Hardware> barrier(shape, WaitPolicy::oversubscribed(), patience_ns);
    EXPECT_EQ(run_trial({&barrier}, {.seed = random.next(),
                                     .episodes = rounds(2000),
                                     .budget_ms = 40,
                                     .processes = processes,
                                     .bind = random.one_in(2)}),
              "")
        << participants << " participants\nreplay: " << replay_command();
  }
}

TYPED_TEST(OverMessagesTest, HoldsBetweenThreads) { run<TypeParam>(false); }
TYPED_TEST(OverMessagesTest, HoldsBetweenProcesses) { run<TypeParam>(true); }

/// No barrier: rank 0 sends, synchronously at last, and rank 1 takes its time.
template <Machine M>
class SendsToOne : public OverMessages<M> {
 public:
  using OverMessages<M>::OverMessages;
  using typename OverMessages<M>::Ticket;
  static constexpr Traits traits{"sends-to-one", Champion::nobody, false, "", ""};
  bool wait(M& m, Ticket& t) const {
    if (t.rank == 0) {
      this->send(m, t, 1);
      if (!this->send_synchronously(m, t, 1)) return false;
      fence(std::memory_order_acquire);  // a receipt orders nothing
      return looks;
    }
    if (!this->receive(m, t, 0)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    looks = true;
    fence(std::memory_order_release);
    return this->receive_and_confirm(m, t, 0);
  }
  static inline std::atomic<bool> looks;

 private:
  /// ThreadSanitizer knows none.
  static void fence(std::memory_order order) {
    if constexpr (!under_tsan) std::atomic_thread_fence(order);
  }
};

TEST(OverMessagesTest, ASynchronousSendReturnsWhenItsMessageHasBeenTaken) {
  const HangGuard guard(60);
  TemplateSubject<SendsToOne<Hardware>, Hardware> ranks({.participants = 2},
                                                        WaitPolicy::oversubscribed(), patience_ns);
  std::thread other([&] {
    Random random(1);
    EXPECT_EQ(ranks.wait(1, random), "");
  });
  Random random(0);
  EXPECT_EQ(ranks.wait(0, random), "");
  other.join();
}

}  // namespace
}  // namespace muster::test
