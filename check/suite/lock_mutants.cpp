// SPDX-License-Identifier: BSD-3-Clause
// Locks with one fault each, which no weaker memory order would cause. A mutant is the shipped
// header over a machine of its own. Either the machine has the fault; or one of the header's
// functions is written anew for it, wrongly: the fault is the line that its comment tells of, all
// else is copied.
#include <utility>
#include <vector>

#include "check/suite/bell.hpp"
#include "check/suite/departure.hpp"
#include "check/suite/kept_posts.hpp"
#include "check/suite/lock_rehearsal.hpp"
#include "check/suite/locks.hpp"

namespace muster::check {
namespace {

/// The checked machine, once more for each fault.
template <int number>
struct Faulty : Checked {
  using Checked::Checked;
};

/// One that stores a word, where it is to do so in that order, so many other stores and exchanges
/// too late.
template <Order order, Word word, int writes>
class Late : public Checked {
 public:
  using Checked::Checked;

  template <Order O>
  void store(Cell& cell, Word value, OrderTag<O> of, Site site = Site::here()) {
    if (O == order && value == word) {
      late_.push_back(&cell);
      left_ = writes;
      return;
    }
    Checked::store(cell, value, of, site);
    has_written(site);
  }
  template <Order O>
  Word exchange(Cell& cell, Word value, OrderTag<O> of, Site site = Site::here()) {
    const Word before = Checked::exchange(cell, value, of, site);
    has_written(site);
    return before;
  }
  void store_unawaited(Cell& cell, Word value, Site site = Site::here()) {
    store(cell, value, relaxed, site);
  }
  template <Order O>
  Word exchange_unawaited(Cell& cell, Word value, OrderTag<O> of, Site site = Site::here()) {
    return exchange(cell, value, of, site);
  }

 private:
  void has_written(Site site) {
    if (--left_ != 0) return;
    for (Cell* const cell : std::exchange(late_, {})) {
      Checked::store(*cell, word, OrderTag<order>{}, site);
    }
  }

  std::vector<Cell*> late_;
  int left_ = 0;
};
constexpr int never = 1'000'000;

/// A client says that it waits when its predecessor knows it already.
using WaitsTooLate = Late<Order::relaxed, 1, 2>;
/// A word is busy only when it is the tail's already.
using BusyTooLate = Late<Order::relaxed, 1, 1>;
/// The spare is made ready when it is the tail's already.
using SparePreparedLate = Late<Order::relaxed, ~Word{0}, 1>;
/// Who has left a request does not take its link back: with its next section, nobody being behind
/// it, whoever is head finds a request there.
using LinkLeft = Late<Order::relaxed, 0, never>;
/// A request counts as served before its entry is 0.
using CountedEarly = Late<Order::release, 0, 1>;
/// A ring's first request is not marked begun: while it has given the lock up, others execute it
/// once more.
using NotMarked = Late<Order::relaxed, 1, never>;
/// Requests are cleared after the response, when their clients may have posted again.
using ClearedLate = Late<Order::relaxed, 0, 1>;

using NotedEarly = DepartureLot<1>;
using NoSecondLook = BellLot<1>;
using LooksBefore = BellLot<2>;
using WokenUncounted = BellLot<3>;
using NoLightFence = BellLot<4>;
using NoLinkAwaited = Faulty<1>;
using OwnWordKept = Faulty<3>;
using FreedUnseen = Faulty<5>;
using AnswerAwaitedAlone = Faulty<6>;
using LinkReadLate = Faulty<7>;
using OneSlot = Faulty<9>;
using CalledEarly = Faulty<10>;
using NotNumbered = Faulty<12>;
using NotReadAgain = Faulty<14>;
using ClientForgotten = Faulty<15>;
using NewsLost = Faulty<16>;
using OthersAnswerLost = Faulty<18>;
using NoLastPass = Faulty<19>;
using CombinesLate = Faulty<20>;
using ServerTrusted = Faulty<21>;
using NotLookedAgain = Faulty<22>;
using BusyIsDone = Faulty<24>;
using SentEarly = Faulty<25>;
using KeptUncounted = Faulty<26>;
using StaleLink = Faulty<28>;
using FreeIsTaken = Faulty<29>;
using KeptForAny = Faulty<30>;
using TriedAnyhow = Faulty<31>;

}  // namespace
}  // namespace muster::check

namespace muster::locks {

// NOLINTBEGIN(readability-convert-member-functions-to-static): as what they stand for.

/// Who tries announces itself where somebody reads, and takes that back.
template <>
bool PhaseFair<check::TriedAnyhow>::try_acquire(check::TriedAnyhow& m, Ticket& t) const {
  t.number = m.load(serving(), muster::acquire);
  Word drawn = t.number;
  if (!m.compare_exchange(next(), drawn, t.number + 1, relaxed)) return false;
  bool nobody_reads = true;
  for (unsigned c = 0; c < clusters_; ++c) {
    const Word readers = m.fetch_add(came(c), bits(ended(m, c)), muster::release);
    if (m.load(gone(c), muster::acquire) != readers) nobody_reads = false;
  }
  if (!nobody_reads) release(m, t);
  return nobody_reads;
}

/// Who tries keeps the link that its last visit has left.
template <>
bool Mcs<check::StaleLink>::try_acquire(check::StaleLink& m, Ticket& t) const {
  Word nobody = 0;
  return m.compare_exchange(tail(), nobody, t.client + 1, acq_rel);
}

/// Who leaves does not wait for the link of a successor that is about to write it.
template <>
void Mcs<check::NoLinkAwaited>::release(check::NoLinkAwaited& m, Ticket& t) const {
  const Word successor = m.load(next(t.client), muster::acquire);
  if (successor == 0) {
    Word mine = t.client + 1;
    m.compare_exchange(tail(), mine, 0, muster::release);
    return;
  }
  m.store(waiting(successor - 1), 0, muster::release);
}

/// A client goes on with its own word, for which its successor may wait, not its predecessor's.
template <>
void Clh<check::OwnWordKept>::release(check::OwnWordKept& m, Ticket& t) const {
  m.store(busy(t.mine), 0, muster::release);
}

/// The lock is freed without a look: what was pushed as the holder left is lost.
template <>
bool Oyama<check::FreedUnseen>::give(check::FreedUnseen& m, Ticket&) const {
  m.store(top(), 0, release);
  return true;
}

/// Who has published waits for its answer alone: the combiner has left without it.
template <>
template <class Work>
bool FlatCombining<check::AnswerAwaitedAlone>::delegate(check::AnswerAwaitedAlone& m, Ticket& t,
                                                        Work& work) const {
  publish(m, t, work);
  if (!m.take_held(held())) return m.await(pending(t.client), equals(0), acquire);
  if (m.load(pending(t.client), relaxed) != 0) {
    m.store(pending(t.client), 0, relaxed);
    work.run_own(m);
  }
  return serve(m, t, work);
}

/// Who gets the lock executes its own request, which another combiner may just have.
template <>
template <class Work>
bool FlatCombining<check::NotReadAgain>::delegate(check::NotReadAgain& m, Ticket& t,
                                                  Work& work) const {
  publish(m, t, work);
  while (m.load(held(), relaxed) != 0 || !m.take_held(held())) {
    const Either<check::NotReadAgain> first =
        await_either(m, pending(t.client), held(), Awaited::combiner);
    if (first.gave_up) return false;
    if (first.own) return true;
  }
  m.store(pending(t.client), 0, relaxed);
  work.run_own(m);
  return serve(m, t, work);
}

/// The link is read when the slot is marked done, and may be its owner's again.
template <>
template <class Work>
Word CcSynch<check::LinkReadLate>::combine(check::LinkReadLate& m, Ticket& t, Work& work) const {
  Word slot = t.next;
  for (unsigned executed = 1; executed < limit_; ++executed) {
    if (m.load(link(slot), acquire) == 0) break;
    work.run(m, slot);
    m.store(state(slot), done, release);
    const Word next = m.load(link(slot), acquire);
    if (next == 0) break;
    slot = next - 1;
  }
  return slot;
}

/// A client has one slot, not two: it comes back to it while the combiner reads its link.
template <>
bool DsmSynch<check::OneSlot>::take(check::OneSlot& m, Ticket& t) const {
  const Word slot = t.slot();
  m.store(state(slot), waiting, relaxed);
  m.store(link(slot), 0, relaxed);
  t.before = m.exchange(tail(), slot + 1, acq_rel);
  return t.before == 0;
}

/// The next combiner of the cluster is called before it can have the cluster's word.
template <>
template <class Work>
bool HSynch<check::CalledEarly>::execute(check::CalledEarly& m, Ticket& t, Work& work) const {
  using Turn = CcSynch<check::CalledEarly>::Turn;
  if (!queues_.join(m, t.queue, t.cluster)) {
    const Turn turn = queues_.leave_request(m, t.queue, work);
    if (turn != Turn::head) return turn == Turn::done;
  }
  const Word mine = m.load(owned(t.cluster), relaxed);
  m.store(busy(mine), 1, relaxed);
  const Word predecessor = m.exchange(central(), mine, acq_rel);
  if (!m.await(busy(predecessor), equals(0), acquire)) return false;
  work.run_own(m);
  queues_.make_head(m, queues_.combine(m, t.queue, work));
  m.store(busy(mine), 0, release);
  m.store(owned(t.cluster), predecessor, relaxed);
  return true;
}

/// Requests have no number: who knows an old `served` takes a later one for the next.
template <>
constexpr Word Rings<check::NotNumbered>::request(Word, Word lock) {
  return lock + 1;
}

/// The test is made before the lock is taken, by those that wait, and not again under it. (Rings of
/// one entry: it is known where the request was.)
template <>
template <class Work>
bool Rings<check::NotReadAgain>::serve(check::NotReadAgain& m, unsigned client, Word,
                                       Work& work) const {
  const Served turn(m.load(served(client), acquire));
  if (turn.is_busy) return false;
  Cell& entry = cells_.of(client, 0);
  m.load(entry, acquire);
  m.store(served(client), Served{turn.executed, 0, true}.word(), relaxed);
  work.run(m, client);
  m.store(entry, 0, release);
  m.store(served(client), Served{turn.executed + 1, 0, false}.word(), release);
  return true;
}
/// (Who goes through all clients has tested none of them.)
template <>
template <class Work>
unsigned Desk<check::NotReadAgain>::pass(check::NotReadAgain& m, Work& work, Word but) const {
  unsigned executed = 0;
  for (Word client = 0, count = m.load(*clients, relaxed); client < count; ++client) {
    if (client == but || rings.next(m, client).request == 0) continue;
    if (rings.serve(m, client, lock, work)) ++executed;
  }
  return executed;
}

/// A server executes, with the lock, what it saw without: another one may have done so meanwhile.
template <>
bool serve_round(check::NotLookedAgain& m, const Rings<check::NotLookedAgain>& rings,
                 check::PassingServer<check::NotLookedAgain>& server) {
  for (Word client = server.next(0); client != no_client; client = server.next(client + 1)) {
    const auto seen = rings.next(m, client);
    const Word lock = rings.lock_of(seen.request);
    if (seen.request == 0 || !server.take(lock)) continue;
    server.execute(lock, client, seen);
    server.give(lock);
  }
  return false;
}

/// It keeps the lock for a request that names another one.
template <>
bool serve_round(check::KeptForAny& m, const Rings<check::KeptForAny>& rings,
                 check::PassingServer<check::KeptForAny>& server) {
  Word has = rings.locks_max;
  for (Word client = server.next(0); client != no_client; client = server.next(client + 1)) {
    auto wanted = rings.next(m, client);
    if (wanted.request == 0) continue;
    if (has == rings.locks_max && !server.take(rings.lock_of(wanted.request))) continue;
    if (has == rings.locks_max) has = rings.lock_of(wanted.request);
    wanted = rings.next(m, client);
    if (wanted.request != 0) server.execute(rings.lock_of(wanted.request), client, wanted);
  }
  if (has != rings.locks_max) server.give(has);
  return false;
}

/// Of two clients that come at once one may be forgotten.
template <>
void raise_clients(check::ClientForgotten& m, check::Checked::Cell& clients, unsigned client) {
  if (m.load(clients, relaxed) < client + 1) m.store(clients, client + 1, relaxed);
}

/// The server looks first and then clears the news: what happens in between is lost.
template <>
bool Reception<check::NewsLost>::next(check::NewsLost& m) const {
  const bool goes_on = m.load(serving(), acquire) != 0;
  m.exchange(news(), 0, acquire);
  return goes_on;
}

/// A response forgets what it has told the others.
template <>
template <class Work>
void RclBatch<check::OthersAnswerLost>::pass(check::OthersAnswerLost& m, unsigned count,
                                             Work& work) const {
  Word answers = 0;
  for (unsigned c = 0; c < count; ++c) {
    if (m.load(request(c), acquire) == 0) continue;
    m.store(request(c), 0, relaxed);
    work.run(m, c);
    answers |= bit_of(c);
  }
  if (answers != 0) m.store(response(0), answers, release);
}

/// The server leaves as soon as it is told to: what it has not seen yet is lost.
template <>
template <class Work>
bool RclBatch<check::NoLastPass>::serve(check::NoLastPass& m, Work& work) const {
  do {
    const Word count = m.load(reception_.clients(), relaxed);
    std::vector<check::Checked::Cell*> slots;
    for (unsigned client = 0; client < count; ++client) slots.push_back(&request(client));
    slots.push_back(&reception_.news());
    for (;;) {
      const std::size_t at = m.await_any(slots, at_least(1), relaxed);
      if (at == no_cell) return false;
      if (at == count) break;
      pass(m, count, work);
    }
  } while (reception_.next(m));
  return true;
}

/// The lock is given first, and then what others have posted is executed.
template <>
template <class Work, class Combines>
void Auto<check::CombinesLate>::give_after_visit(check::CombinesLate& m, Habit& h, Work& work,
                                                 Combines combines) const {
  wanted_.clear(m);
  desk_.give(m);
  const unsigned executed = desk_.combine(m, work, combines, server_, h.pace);
  if (executed != 0 && is_served(m)) h.set_delegates(true);
}

/// Who finds a server waits for its answer alone: the server may leave.
template <>
template <class Work, class Combines>
bool Auto<check::ServerTrusted>::finish(check::ServerTrusted& m, Ring& ring, Habit& h,
                                        check::Checked::Cell& entry, Work& work,
                                        Combines combines) const {
  for (;;) {
    if (is_served(m)) return m.await(entry, equals(0), acquire);
    const auto first =
        wanted_.wait_for_either(m, entry, *desk_.held, Expectation{h.is_used_to(), combines()});
    if (first.gave_up) return false;
    if (first.own) desk_.rings.has_answer(ring);
    if (first.own) return true;
    if (!desk_.take(m)) continue;
    const bool executed = desk_.rings.serve(m, ring.client, desk_.lock, work);
    h.set_delegates(false);
    give_after_visit(m, h, work, combines);
    if (executed && m.load(entry, relaxed) == 0) return true;
  }
}

/// Who gets the lock and finds nothing to execute takes its request for done: it may have begun, in
/// a section that has given the lock up.
template <>
template <class Work, class Combines>
bool Auto<check::BusyIsDone>::finish(check::BusyIsDone& m, Ring& ring, Habit& h,
                                     check::Checked::Cell& entry, Work& work,
                                     Combines combines) const {
  for (;;) {
    const auto first =
        wanted_.wait_for_either(m, entry, *desk_.held, Expectation{h.is_used_to(), combines()});
    if (first.gave_up) return false;
    if (first.own) desk_.rings.has_answer(ring);
    if (first.own) return true;
    if (!desk_.take(m)) continue;
    desk_.rings.serve(m, ring.client, desk_.lock, work);
    h.set_delegates(false);
    give_after_visit(m, h, work, combines);
    return true;
  }
}

/// What is posted in between is left to a server that does not know of it.
template <>
template <class Atom, class Look>
auto Departure<check::NotedEarly>::leave(check::NotedEarly lot, Atom& server, Look look)
    -> decltype(look()) {
  auto found = look();
  lot.add(server, Word(-1));
  lot.heavy_fence();
  return found;
}

/// Who waits for a lock without a request has it once it was free.
template <>
bool Wanted<check::FreeIsTaken>::take_in_turn(check::FreeIsTaken& m,
                                              const Desk<check::FreeIsTaken>& desk) const {
  return desk.take(m) || wait_until_free(m, *desk.held);
}

/// The server sleeps without its second look.
template <>
template <class Atom, class IsWanted>
void Bell<check::NoSecondLook>::sleep(check::NoSecondLook lot, Announcements<Atom>& all, IsWanted) {
  sleep_on_bell(lot, all, [] { return false; });
}

/// It looks again before it is announced.
template <>
template <class Atom, class IsWanted>
void Bell<check::LooksBefore>::sleep(check::LooksBefore lot, Announcements<Atom>& all,
                                     IsWanted is_wanted) {
  if (!is_wanted()) sleep_on_bell(lot, all, [] { return false; });
}

/// The bell is not counted: who has read it and does not sleep yet sleeps.
template <>
template <class Atom>
void Bell<check::WokenUncounted>::wake(check::WokenUncounted lot, Announcements<Atom>& all) {
  lot.unpark_all(all.bell);
}

/// No fence between the post and the look whether the server sleeps.
template <>
template <class Atom>
void Bell<check::NoLightFence>::ring(check::NoLightFence lot, Announcements<Atom>& all) {
  if (lot.peek(all.any_sleepers) != 0) wake(lot, all);
}

/// A post is counted as sent before it is.
template <>
template <class Cell, class Post>
void KeptPosts<check::SentEarly>::send(check::SentEarly& m, Cell& kept, Post post) {
  m.fetch_add(kept, Word(-1), muster::release);
  post();
}

/// A post is counted while it is sent only.
template <>
template <class Cell>
void KeptPosts<check::KeptUncounted>::keep(check::KeptUncounted&, Cell&) {}
template <>
template <class Cell, class Post>
void KeptPosts<check::KeptUncounted>::send(check::KeptUncounted& m, Cell& kept, Post post) {
  m.fetch_add(kept, 1, relaxed);
  post();
  m.fetch_add(kept, Word(-1), muster::release);
}

// NOLINTEND(readability-convert-member-functions-to-static)

}  // namespace muster::locks

namespace muster::check {
namespace {

/// What is checked about the lock that it is, with the fault.
template <template <LockMachine> class L, class M>
HandWritten mutant(const char* name) {
  HandWritten made{name, {}};
  for (const LockScenario& scenario : lock_scenarios(std::string(L<M>::traits.name))) {
    made.programs.push_back({scenario.name(), [scenario](Tuning& tuning) {
                               return rehearse_lock<L<M>, M>(scenario, tuning);
                             }});
  }
  return made;
}

/// Of the scenarios of the rings, those of that variant.
HandWritten mutant_of(LockVariant variant, const char* name,
                      Program (*rehearse)(const LockScenario&, Tuning&)) {
  HandWritten made{name, {}};
  for (const LockScenario& scenario : lock_scenarios("rings")) {
    if (scenario.variant != variant) continue;
    made.programs.push_back({scenario.name(), [scenario, rehearse](Tuning& tuning) {
                               return rehearse(scenario, tuning);
                             }});
  }
  return made;
}

template <class M>
HandWritten mutant_of_rings(const char* name) {
  HandWritten made{name, {}};
  for (const LockScenario& scenario : lock_scenarios("rings")) {
    made.programs.push_back({scenario.name(), [scenario](Tuning& tuning) {
                               return rehearse_rings<M>(scenario, tuning);
                             }});
  }
  return made;
}

}  // namespace

std::vector<HandWritten> hand_written_locks() {
  using namespace locks;
  return {
      mutant<PhaseFair, TriedAnyhow>("phase-fair: a try announced where somebody reads"),
      mutant<locks::Mcs, StaleLink>("mcs: tried with the link of its last visit"),
      mutant<locks::Mcs, NoLinkAwaited>("mcs: a link not awaited"),
      mutant<locks::Mcs, WaitsTooLate>("mcs: linked before it says that it waits"),
      mutant<Clh, OwnWordKept>("clh: its own word kept"),
      mutant<Clh, BusyTooLate>("clh: a word busy after it is the tail"),
      mutant<Oyama, FreedUnseen>("oyama: freed without a look at the list"),
      mutant<FlatCombining, AnswerAwaitedAlone>("flat-combining: the lock not awaited"),
      mutant<FlatCombining, NotReadAgain>(
          "flat-combining: a request not read again under the lock"),
      mutant<CcSynch, LinkReadLate>("cc-synch: a link read after its slot is done"),
      mutant<CcSynch, SparePreparedLate>("cc-synch: a spare made ready after it is the tail"),
      mutant<CcSynch, LinkLeft>("cc-synch: a link not taken back"),
      mutant<DsmSynch, OneSlot>("dsm-synch: one slot a client"),
      mutant<HSynch, CalledEarly>("h-synch: the next head called too early"),
      mutant_of_rings<CountedEarly>("rings: counted before the entry is 0"),
      mutant_of_rings<NotNumbered>("rings: requests without a number"),
      mutant_of_rings<NotMarked>("rings: a request not marked begun"),
      mutant<Rcl, NotReadAgain>("rcl: a request not read again under the lock"),
      mutant<Rcl, ClientForgotten>("rcl: clients counted without an update"),
      mutant<RclBatch, NewsLost>("rcl-batch: news cleared after the look"),
      mutant<RclBatch, ClearedLate>("rcl-batch: requests cleared after the response"),
      mutant<RclBatch, OthersAnswerLost>("rcl-batch: other answers lost"),
      mutant<RclBatch, NoLastPass>("rcl-batch: no last pass"),
      mutant<Auto, NotReadAgain>("auto: a request not read again under the lock"),
      mutant<Auto, CombinesLate>("auto: the lock given before it combines"),
      mutant<Auto, ServerTrusted>("auto: a server trusted to stay"),
      mutant<Auto, BusyIsDone>("auto: a request that has begun taken for done"),
      mutant<Auto, FreeIsTaken>("auto: who waits in turn has what was free"),
      mutant_of(LockVariant::leaving, "departure: what is pending noted before the server leaves",
                rehearse_departure<NotedEarly>),
      mutant_of(LockVariant::ends, "kept posts: counted as sent before it is",
                rehearse_kept<SentEarly>),
      mutant_of(LockVariant::ends, "kept posts: not counted until it is sent",
                rehearse_kept<KeptUncounted>),
      mutant_of(LockVariant::sleeps, "bell: a server sleeps without its second look",
                rehearse_bell<NoSecondLook>),
      mutant_of(LockVariant::sleeps, "bell: the second look before the server is announced",
                rehearse_bell<LooksBefore>),
      mutant_of(LockVariant::sleeps, "bell: a ring not counted", rehearse_bell<WokenUncounted>),
      mutant_of(LockVariant::sleeps, "bell: no fence between a post and the look for the server",
                rehearse_bell<NoLightFence>),
      mutant<Auto, NotLookedAgain>("rounds: a request not read again under the lock"),
      mutant<Auto, KeptForAny>("rounds: the lock kept for a request of another one"),
  };
}

}  // namespace muster::check
