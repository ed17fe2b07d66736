// SPDX-License-Identifier: BSD-3-Clause
// How clients wait for a lock's holder.
#include "delegation/port.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

#include "harness.hpp"
#include "lock/auto.hpp"
#include "lock/round.hpp"

namespace muster::test {
namespace {

using delegation::line_bytes;
using delegation::Port;

/// A client of a lock that is nobody's but this test's.
struct Client {
  Hardware::Domain domain{};
  Port port{domain, 0};
};

TEST(Waiting, AFreeLockIsFoundWithoutAWordToItsHolder) {
  Client client;
  for (const bool soon : {true, false}) {
    Hardware::Cell own{};
    own.value = 1;
    const Hardware::Cell free{};
    Hardware::Cell wanted{};
    Hardware::Cell dozing{};
    EXPECT_EQ(1, client.port.await_either(own, free, acquire, wanted, dozing, {soon, true}));
    EXPECT_EQ(0U, wanted.value.load()) << soon;
  }
}

TEST(Waiting, WhoHasTheLockIsTold) {
  Client client;
  Hardware::Cell own{};
  own.value = 1;
  Hardware::Cell held{};
  held.value = 1;
  Hardware::Cell wanted{};
  Hardware::Cell dozing{};
  std::thread holder([&] {
    while (wanted.value.load() == 0) sched_yield();
    Port port(client.domain, 1);
    port.store(own, 0, release);
  });
  EXPECT_EQ(0, client.port.await_either(own, held, acquire, wanted, dozing, {true, true}));
  EXPECT_EQ(1U, wanted.value.load());
  holder.join();
}

/// Counts how often another one is let in; its clients have no seats.
class Watched : public Port {
 public:
  using Port::Port;
  using Cells = delegation::FixedCells<line_bytes, sizeof(Cell)>;
  static Word next_client(Word from, Word) noexcept { return from; }
  static void let_one_in(const Cell&, const Cell&) noexcept { ++let_in; }
  static bool is_crowded() noexcept { return crowded; }
  static std::int64_t time_ns() noexcept { return time += step; }
  static inline unsigned let_in = 0;
  static inline bool crowded = false;
  static inline std::int64_t time = 0;
  static inline std::int64_t step = 0;  ///< from one look at the clock to the next
};

TEST(Waiting, WhoIsNotWhereTheDataAreStandsBackOnce) {
  using locks::StandBack;
  struct Somewhere : Port {
    using Port::Port;
    bool is_near(Word place) const noexcept { return place == 5; }
    void linger(unsigned) noexcept { ++lingers; }
    unsigned lingers = 0;
  };
  Hardware::Domain domain{};
  const struct {
    StandBack who;
    bool stands_back;
  } cases[] = {{{}, false},
               {{5, StandBack::who_is_elsewhere}, false},
               {{6, StandBack::who_is_elsewhere}, true},
               {{5, StandBack::who_is_near}, true},
               {{6, StandBack::who_is_near}, false}};
  for (const auto& at : cases) {
    Somewhere port(domain, 0);
    Hardware::Cell cell{};
    cell.value = at.who.word();
    locks::StandingBack<Somewhere> standing_back(&cell);
    EXPECT_EQ(at.stands_back, standing_back.did(port)) << at.who.word();
    EXPECT_FALSE(standing_back.did(port));
    EXPECT_EQ(at.stands_back ? 1U : 0U, port.lingers);
  }
  Somewhere port(domain, 0);
  EXPECT_FALSE(locks::StandingBack<Somewhere>(nullptr).did(port));
}

TEST(Waiting, WhoHadTheLockForLongStandsBackTheLongerAgoTheLess) {
  struct Timed : Port {
    using Port::Port;
    static std::int64_t time_ns() noexcept { return 20'000'000'000'000'000; }  // eight months
    void linger(unsigned turns) noexcept { lingered += turns; }
    unsigned lingered = 0;
  };
  Hardware::Domain domain{};
  const struct {
    std::int64_t ns;
    unsigned turns;
  } ago[] = {{0, 1024},
             {2'000'000, 512},
             {4'000'000, 0},
             {Timed::time_ns() - 1, 0},
             {Timed::time_ns(), 0}};
  for (const auto& at : ago) {
    Timed port(domain, 0);
    const std::int64_t had_ns = Timed::time_ns() - at.ns;  // 0: never
    EXPECT_EQ(at.turns != 0, locks::StandingBack<Timed>(nullptr, had_ns).did(port));
    EXPECT_EQ(at.turns, port.lingered) << at.ns;
  }
}

struct NoWork {
  template <class M>
  void put(M&, unsigned) {}
  template <class M>
  void posted(M&) {}
  template <class M>
  void run(M&, unsigned) {}
};

/// An `auto` lock whose owner executes so many requests of others in each of so many visits, for
/// which `asks` has set `wanted`; how often it lets one of them have the lock.
unsigned let_in_by_visits(
    unsigned visits, unsigned requests, void (*asks)(Hardware::Cell&) = [](Hardware::Cell& wanted) {
      wanted.value = locks::by_another;
    }) {
  const auto memory = delegation::reserve((4 + requests) * line_bytes);
  const Watched::Cells cells(memory.get(), memory.get() + 4 * line_bytes);
  const locks::Desk<Watched> desk{&cells.global(0), &cells.global(1), {1, cells}, 0};
  const locks::Auto<Watched> lock(desk, {cells.global(2), cells.global(3)}, nullptr);
  Hardware::Domain domain{};
  Watched port(domain, 0);
  NoWork work;
  std::vector<locks::Auto<Watched>::Ring> clients;
  for (unsigned client = 0; client < requests; ++client) clients.push_back({.client = client});
  locks::Habit owner;
  Watched::let_in = 0;
  for (; visits > 0; --visits) {
    for (auto& client : clients) {
      desk.enter(port, client);
      desk.rings.post(port, client, desk.lock, work);
    }
    EXPECT_TRUE(lock.take(port));
    asks(cells.global(2));
    lock.give_after_visit(port, owner, work, [] { return true; });
    for (auto& client : clients) desk.rings.has_answer(client);
  }
  return Watched::let_in;
}

TEST(LettingIn, AfterSoManyVisits) {
  constexpr unsigned visits_max = locks::Habit::visits_max;
  for (const unsigned requests : {0U, 1U, 7U, 255U}) {
    EXPECT_EQ(0U, let_in_by_visits(visits_max - 1, requests));
    EXPECT_EQ(1U, let_in_by_visits(visits_max, requests));
  }
  EXPECT_EQ(3U, let_in_by_visits(3 * visits_max, 1));
  // What a section leaves to see to is no visit.
  EXPECT_EQ(0U, let_in_by_visits(64, 1, Port::set_by_section));
  EXPECT_EQ(0U, let_in_by_visits(64, 32, Port::set_by_section));
}

/// A server, for some rounds, of one lock; it counts in how many it has asked for that.
struct Visitor : locks::Walk<Watched> {
  const locks::Auto<Watched>& only;
  Hardware::Cell& wanted;
  unsigned rounds;
  unsigned& asked;

  bool goes_on(bool) {
    asked += wanted.value.exchange(0) == locks::by_another ? 1 : 0;
    return rounds-- > 0;
  }
  const locks::Auto<Watched>& lock(Word) const { return only; }
  bool take(Word) const { return only.take(port_); }
  static bool execute(Word, Word, const locks::Rings<Watched>::Next&) { return true; }
  static bool has_given() { return true; }
};

TEST(Waiting, AServerThatFindsALockTakenAsksEachSoManyRounds) {
  const auto memory = delegation::reserve((4 + 1) * line_bytes);
  const Watched::Cells cells(memory.get(), memory.get() + 4 * line_bytes);
  const locks::Desk<Watched> desk{&cells.global(0), &cells.global(1), {1, cells}, 0};
  const locks::Auto<Watched> lock(desk, {cells.global(2), cells.global(3)}, nullptr);
  Hardware::Domain domain{};
  Watched port(domain, 0);
  locks::Auto<Watched>::Ring ring{.client = 0};
  NoWork work;
  ASSERT_NE(nullptr, lock.post(port, ring, work));
  const auto asked_in = [&](unsigned rounds) {
    unsigned asked = 0;
    locks::serve(port, desk.rings,
                 Visitor{{port, cells.global(1)}, lock, cells.global(2), rounds, asked});
    return asked;
  };
  EXPECT_EQ(0U, asked_in(3 * Asking::races));
  ASSERT_TRUE(lock.take(port));
  EXPECT_EQ(3U, asked_in(3 * Asking::races));
}

/// A server that has looked between finds nothing of a client whose request is being executed.
TEST(Waiting, WhoExecutesItsOwnRequestTellsTheServerOfTheNext) {
  struct Counts : NoWork {
    void posted(Watched&) { ++told; }
    unsigned told = 0;
  };
  const auto memory = delegation::reserve((4 + 1) * line_bytes);
  const Watched::Cells cells(memory.get(), memory.get() + 4 * line_bytes);
  const locks::Desk<Watched> desk{&cells.global(0), &cells.global(1), {2, cells}, 0};
  const locks::Auto<Watched> lock(desk, {cells.global(2), cells.global(3)}, nullptr);
  Hardware::Domain domain{};
  Watched port(domain, 0);
  locks::Auto<Watched>::Ring ring{.client = 0};
  locks::Habit habit;
  Counts work;
  ASSERT_NE(nullptr, lock.post(port, ring, work));
  Hardware::Cell* const last = lock.post(port, ring, work);
  EXPECT_EQ(2U, work.told);
  EXPECT_TRUE(lock.finish(port, ring, habit, *last, work, [] { return false; }));
  EXPECT_EQ(2U, habit.inlined.value());
  EXPECT_EQ(4U, work.told);
}

/// Two clients, each of whose sections posts the next one of the other.
struct InTurn {
  const locks::Desk<Watched>& desk;
  std::vector<locks::Auto<Watched>::Ring> clients{{.client = 0}, {.client = 1}};
  unsigned left = 1000;

  void post(Watched& port, unsigned client) {
    desk.enter(port, clients[client]);
    desk.rings.post(port, clients[client], desk.lock, *this);
  }
  void put(Watched&, unsigned) {}
  void posted(Watched&) {}
  void run(Watched& port, unsigned slot) {
    const unsigned other = 1 - slot;
    locks::Rings<Watched>::has_answer(clients[other]);
    if (--left > 0) post(port, other);
  }
};

/// What one visit that executes their sections leaves.
locks::Habit after_a_visit(std::int64_t step_ns, bool crowded,
                           std::int64_t visit_ns = locks::Visit::usual_ns) {
  const auto memory = delegation::reserve((4 + 2) * line_bytes);
  const Watched::Cells cells(memory.get(), memory.get() + 4 * line_bytes);
  const locks::Desk<Watched> desk{&cells.global(0), &cells.global(1), {1, cells}, 0, visit_ns};
  const locks::Auto<Watched> lock(desk, {cells.global(2), cells.global(3)}, nullptr);
  Hardware::Domain domain{};
  Watched port(domain, 0);
  Watched::step = step_ns;
  Watched::crowded = crowded;
  InTurn sections{desk};
  sections.post(port, 0);
  EXPECT_TRUE(lock.take(port));
  locks::Habit owner;
  lock.give_after_visit(port, owner, sections, [] { return true; });
  return owner;
}
std::uint64_t executed_in_a_visit(std::int64_t step_ns, bool crowded,
                                  std::int64_t visit_ns = locks::Visit::usual_ns) {
  return after_a_visit(step_ns, crowded, visit_ns).combined.value();
}

TEST(Visit, GoesOnWhileThereAreRequests) { EXPECT_EQ(1000U, executed_in_a_visit(0, false)); }

/// Sixty-four sections in any case; then it looks at the clock after each pass, of two. It ends
/// sooner by what so many took, four passes, and the 8 us until somebody says that it waits.
TEST(Visit, EndsAfterAMillisecond) {
  EXPECT_EQ(64U + 2, executed_in_a_visit(1'000'000, false));
  EXPECT_EQ(64U + 2 * (100 - 36), executed_in_a_visit(10'000, false));
}
TEST(Visit, EndsAfterTheTimeThatTheLockWasGiven) {
  EXPECT_EQ(64U + 2 * (150 - 36 - 4), executed_in_a_visit(2'000, false, 300'000));
  EXPECT_EQ(64U + 2, executed_in_a_visit(2'000, false, 1));
  EXPECT_EQ(1000U, executed_in_a_visit(2'000, false, WaitPolicy::forever));
}

TEST(Visit, TellsHowFastSectionsWereOnceItLooksAtTheClock) {
  const locks::Habit owner = after_a_visit(10'000, false);
  EXPECT_EQ(2U * 64, owner.pace.sections.value());
  EXPECT_EQ(640'000U, owner.pace.ns.value());
}

TEST(Visit, IsOnePassWhereThreadsShareCpus) { EXPECT_EQ(1U, executed_in_a_visit(0, true)); }

}  // namespace
}  // namespace muster::test
