// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/delegated.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "delegation/work.hpp"
#include "lock/departure.hpp"
#include "lock/nested.hpp"
#include "machine/format.hpp"
#include "wait/linger.hpp"

namespace muster::delegation {

/// Work for rings: tells the server that there is some.
class Delegated::PostedWork : public WorkFrom<Inside, RingBoard> {
 public:
  PostedWork(Section section, Station& station, AnyLock* lock, unsigned copied = 0) noexcept
      : WorkFrom(section, station.board(), lock, copied), station_(station) {}
  void posted(auto&) noexcept { station_.ring_bell(); }

 private:
  Station& station_;
};

namespace {

/// With a server, where all is to be delegated.
std::shared_ptr<Station> ready(std::shared_ptr<Station> station, locks::Style style) {
  if (station == nullptr) station = default_station(style);
  try {
    if (style == locks::Style::server && !station->has_server()) station->start({});
  } catch (const Error& error) {
    if (error.code() != Status::busy) throw;  // it has just been started, or is about to end
  }
  return station;
}

}  // namespace

Delegated::Delegated(const locks::Traits& traits, std::shared_ptr<Station> station,
                     std::int64_t visit_ns)
    : AnyLock(traits, traits.style == locks::Style::server ? nullptr : go_short_way),
      station_(ready(std::move(station), traits.style)),
      always_delegates_(traits.style == locks::Style::server),
      auto_(station_->lock(station_->add(), visit_ns, always_delegates_)) {
  station_->open(auto_.desk().lock, this);
}

Delegated::~Delegated() {
  if (!in_own_process()) {
    // Never destroyed here: it has threads that are not.
    static_cast<void>(new (std::nothrow) std::shared_ptr<Station>(std::move(station_)));
    return;
  }
  await_kept_posts(*this);
  station_->remove(auto_.desk().lock, [this](unsigned seat) { return has_client(seat); });
  if (this_thread.serving != station_.get() || station_.use_count() > 1) return;
  // A server cannot await its own end: another thread does.
  auto* const left = new (std::nothrow) std::shared_ptr<Station>(std::move(station_));
  try {
    const NoSignals its_own;
    std::thread([left] { delete left; }).detach();
  } catch (const std::exception&) {  // no thread can be made: the server stays
  }
}

/// Before the lock's number is another one's, which they could take for it.
bool Delegated::await_callers(std::int64_t end_ns) {
  await_kept_posts(*this);
  station_->await_executed(auto_.desk().lock, [this](unsigned seat) { return has_client(seat); });
  // Who has acquired it is calling from its release on; or has ended, and never gives it back.
  for (unsigned looks = 0; auto_.desk().held->value.load(std::memory_order_acquire) != 0; ++looks) {
    if (now_ns() >= end_ns) return false;
    linger(looks);
  }
  return AnyLock::await_callers(end_ns);
}

Delegated::Client Delegated::find_client(const Depth& depth) {
  Station::Seat& seat = station_->seat(depth.seat());
  if (!Inside::any()) await_seats(depth.thread().depth);
  Known& habit = habits_.of(depth.seat());
  const bool is_servant = depth.thread().serving == station_.get();
  seat.thread_id.store(is_servant ? 0 : depth.thread().id, std::memory_order_relaxed);
  if (depth.thread().depth == 1) depth.thread().remember(number_ever(), &seat, &habit);
  return {seat, habit};
}

/// Of the thread's seats from that depth on the first from which something is pending; null: of
/// none. Before that depth it is in calls: what is pending there it executes itself.
Station::Seat* Delegated::pending_seat(unsigned depth) const {
  const Thread& t = this_thread;
  for (; depth < t.seats; ++depth) {
    Station::Seat* const seat = station_->find_seat(t.seat(depth));
    if (seat != nullptr && seat->is_pending()) return seat;
  }
  return nullptr;
}

/// A section that waits for a condition sends its posts from a deeper seat than what its thread
/// sends before and after: rings do not keep the order between these. Whoever has no lock may wait.
void Delegated::await_seats(unsigned depth) {
  while (Station::Seat* const other = pending_seat(depth)) {
    const KeepErrno of_caller(*this_thread.error);
    const Blocking blocking;
    other->port.await(*other->last, equals(0), muster::acquire);
  }
}

/// A thread that has used this lock before, and then others, finds what it has here: as quickly as
/// may be, since whole tables of locks are used in this way. False: it has to look more closely.
bool Delegated::comes_back(Thread& t) {
  if (!t.is_outside() || t.seats == 0 || !in_own_process()) return false;
  Station::Seat* const seat = station_->find_seat(t.first);
  Known* const habit = habits_.find(t.first);
  if (seat == nullptr || habit == nullptr ||
      seat->thread_id.load(std::memory_order_relaxed) != t.id) {
    return false;
  }
  if (pending_seat(1) != nullptr) return false;
  t.last_lock = number_ever();
  t.last_seat = seat;
  t.last_habit = habit;
  t.quick = may_be_quick(*seat, *habit) ? number_ever() : 0;
  return true;
}

int Delegated::go_short_way(AnyLock& lock, Section section, Execute otherwise) {
  if (static_cast<Delegated&>(lock).execute_at_once(this_thread, section)) [[likely]]
    return 0;
  return otherwise(lock, section);
}

void Delegated::execute(Section section, unsigned copied) {
  Thread& t = this_thread;
  const bool came_back = t.last_lock != number_ever() && comes_back(t);
  if (always_delegates_ && knows(t)) return delegate_at_once(t, section, copied);
  if (came_back && t.quick == number_ever() && execute_at_once(t, section)) return;
  execute_anywhere(section, copied);
}

void Delegated::execute_anywhere(Section section, unsigned copied) {
  admit();
  if (execute_nested_in(section)) return;
  const NoCancellation whole;
  const bool outside = this_thread.is_outside();
  Station* meets = nullptr;
  {
    const Calling call(this);
    const Depth depth;
    const auto [seat, habit] = client(depth);
    // What is pending there may need a lock that this thread has, and comes first in that ring.
    if (seat.is_pending() && Inside::any()) [[unlikely]]
      return execute_anywhere(section, copied);
    if (depth.thread().serving != nullptr) [[unlikely]]
      return execute_nested(section, seat, habit);
    if (outside) await_senders(seat);
    PostedWork work(section, *station_, this, copied);
    if (seat.is_pending()) {
      auto_.delegate(seat.port, seat.ring, habit, work, combining());
    } else {
      auto_.execute(seat.port, seat.ring, habit, work, combining());
    }
    meets = learn(depth.thread(), seat, habit);
    work.finish();
  }
  if (meets != nullptr) meets->consider();
  send_kept_posts();
}

/// The way of most sections of an `rcl` lock: a request and its answer.
[[gnu::flatten]] void Delegated::delegate_at_once(Thread& thread, Section section,
                                                  unsigned copied) {
  const auto [seat, habit] = last_client(thread);
  if (!seat.ring.entered || !Station::Rings::is_idle(seat.ring)) [[unlikely]]
    return execute_anywhere(section, copied);
  await_senders(seat);
  {
    const Calling call(this);
    PostedWork work(section, *station_, this, copied);
    const locks::Desk<RingPort>& desk = auto_.desk();
    Hardware::Cell& entry = desk.rings.post_alone(seat.port, seat.ring, desk.lock, work);
    if (RingPort::poll(entry, RingPort::polls_per_clock)) [[likely]] {
      desk.rings.has_answer(seat.ring);
      ++habit.delegated;
      tell_at_times(seat, habit);
      work.finish();
    } else {
      finish_deeper(seat, habit, entry, work);
    }
  }
  send_kept_posts();
}

/// If it executes sections itself, these need seats of their own.
void Delegated::finish_deeper(Station::Seat& seat, Known& habit, Hardware::Cell& entry,
                              PostedWork work) {
  const NoCancellation whole;
  {
    const Depth depth;
    auto_.finish(seat.port, seat.ring, habit, entry, work, combining());
  }
  tell(seat, habit);
  work.finish();
}

/// What the station counts of a client. True if the client has met others since the last time.
bool Delegated::tell(Station::Seat& seat, Known& habit) {
  const std::uint64_t sections = habit.inlined.value() + habit.delegated.value();
  seat.sections += sections - habit.sections_told;
  habit.sections_told = sections;
  const std::uint64_t meets = habit.delegated.value() + habit.waited.value();
  const std::uint64_t more = meets - std::exchange(habit.meets_told, meets);
  seat.meets += more;
  if (habit.pace.ns.value() != 0) tell_pace(seat, habit);
  return more != 0;
}

void Delegated::tell_pace(Station::Seat& seat, Known& habit) {
  const locks::Pace more = std::exchange(habit.pace, {});
  seat.pace.sections += more.sections.value();
  seat.pace.ns += more.ns.value();
  const int cpu = sched_getcpu();
  if (cpu >= 0) seat.cpu.store(static_cast<unsigned>(cpu), std::memory_order_relaxed);
}

/// After a section that was executed at once: somebody waits, or it has left posts. And it is when
/// the steward has to know how many sections were the client's own.
void Delegated::give_back_anyway() {
  const NoCancellation whole;
  Thread& t = this_thread;
  auto& lock = *static_cast<Delegated*>(t.inside);
  const auto [seat, habit] = last_client(t);
  lock.run_deferred();
  lock.visit(seat, habit);
  send_kept_posts();
}

/// It is in no section meanwhile.
void Delegated::visit(Station::Seat& seat, Known& habit) {
  const NoCancellation whole;
  const Calling call(this);
  this_thread.leave();
  tell(seat, habit);
  PostedWork work({}, *station_, this);
  auto_.give_after_visit(seat.port, habit, work, combining());
  ++habit.inlined;
  if (habit.delegates) this_thread.quick = 0;
}

AnyLock::AtOnce Delegated::at_once() {
  static_assert(offsetof(locks::Habit, inlined) == 0);  // a base, so what last_habit points to
  if (always_delegates_ || share() != nullptr) return {};
  return {number_ever(), &auto_.desk().held->value};
}

/// After a section: whether the thread's next one is executed at once. If it has met others, the
/// station with a steward, which stays: whether a server would be of use.
Station* Delegated::learn(Thread& thread, Station::Seat& seat, Known& habit) {
  const bool met = tell(seat, habit);
  const bool outside = thread.depth == 1 && thread.inside == nullptr && thread.outer == nullptr;
  if (!outside || always_delegates_) return nullptr;
  thread.quick = 0;
  if (!in_own_process()) return nullptr;                                 // the section has forked
  if (thread.last_lock == number_ever() && may_be_quick(seat, habit)) {  // else see comes_back()
    thread.quick = number_ever();
  }
  return met && station_->has_steward() ? station_.get() : nullptr;
}

void Delegated::execute_nested(Section section, Station::Seat& seat, Known& habit) {
  const bool posts = this_thread.serving != station_.get() && station_->has_server();
  const auto aside = [](auto wait) {
    const Blocking blocking;
    wait();
  };
  PostedWork work(section, *station_, this);
  locks::execute_nested(seat.port, auto_, seat.ring, habit, work, posts, RingPort::is_soon_free,
                        aside);
  tell(seat, habit);
  work.finish();
}

[[gnu::flatten]] void Delegated::post(Section section) {
  Thread& t = this_thread;
  if (!knows(t)) return post_anywhere(section);
  const Client last = last_client(t);
  await_senders(last.seat);
  send(t, last, section);
}

void Delegated::post_anywhere(Section section) {
  const NoCancellation whole;
  admit_process();
  if (Inside::of(this)) return defer(section);
  if (Inside::any()) {
    prepare_to_send();
    return keep_post(*this, section);
  }
  Thread& t = this_thread;
  if (!station_->has_server()) {
    if (t.quick == number_ever() && execute_at_once(t, section)) return;
    return execute(section);
  }
  const Client own = client(Depth());
  if (t.is_outside()) await_senders(own.seat);  // not while it waits for a condition
  Hardware::Cell* const full = auto_.desk().rings.full_at(own.seat.ring);
  if (full != nullptr && full->value.load(std::memory_order_acquire) != 0) {
    const Blocking blocking;
    own.seat.port.await(*full, equals(0), muster::acquire);
  }
  send(t, own, section);
}

/// The client's own, or the ring's next place is free.
void Delegated::send(Thread& thread, const Client& own, Section section) {
  {
    const Calling call(this);
    PostedWork work(section, *station_, this);
    own.seat.last = auto_.post(own.seat.port, own.seat.ring, work);
    ++own.habit.delegated;
    tell_at_times(own.seat, own.habit);
    thread.quick = 0;  // what it executes next comes after this one
    // The server may have left between: it has seen the request, or this sees that.
    if (!locks::is_left_to_server(FutexLot(), station_->server_cell().value)) [[unlikely]]
      finish_deeper(own.seat, own.habit, *own.seat.last, work);
  }
  send_kept_posts();
}

/// What the calling thread needs here when it is in fewer sections than now.
void Delegated::prepare_to_send() {
  for (unsigned depth = 0; depth <= this_thread.depth; ++depth) {
    const unsigned seat = seat_at(depth);
    station_->seat(seat);
    habits_.of(seat);
  }
}

/// Almost as if somebody waited: that is all that the short way looks at.
void Delegated::look_after_section() noexcept { RingPort::set_by_section(auto_.wanted().wanted); }

void Delegated::give_up() {
  if (combines_.load(std::memory_order_relaxed) ||
      (this_thread.for_another && this_thread.serving == nullptr)) {
    throw Error(
        Status::unsupported,
        "a section that another client may execute cannot wait or be without its lock: make "
        "the condition before the lock is used, or the lock with `unlocks`");
  }
  auto_.give(station_->seat(first_seat()).port);
}

bool Delegated::take_again() {
  static_cast<void>(auto_.take_in_turn(station_->seat(first_seat()).port));
  // Whoever had it meanwhile may have cleared that.
  if (this_thread.todo != 0) look_after_section();
  return true;
}

/// It remembers the lock as find_client() does: not before what the thread has posted elsewhere.
Delegated::Client Delegated::own_client() {
  Thread& t = this_thread;
  if (t.last_lock == number_ever()) [[likely]]
    return last_client(t);
  const unsigned number = first_seat();
  const Client own{station_->seat(number), habits_.of(number)};
  if (t.is_outside() && in_own_process() && pending_seat(1) == nullptr) {
    own.seat.thread_id.store(t.id, std::memory_order_relaxed);
    t.remember(number_ever(), &own.seat, &own.habit);
  }
  return own;
}

/// What the thread has posted comes first, if it may wait for that.
bool Delegated::try_take(bool again) {
  const auto [seat, habit] = own_client();
  if (!Inside::any() && pending_seat(this_thread.depth) != nullptr) return false;
  if (again && !RingPort::is_soon_free(*auto_.desk().held)) {
    auto_.ask(seat.port);
    return false;
  }
  return auto_.take(seat.port);
}

bool Delegated::wait_to_take(std::int64_t end_ns) {
  if (end_ns <= now_ns()) return false;  // no spare for that
  const Blocking blocking;
  if (end_ns == WaitPolicy::forever && !Inside::any()) await_seats(this_thread.depth);
  return AnyLock::wait_to_take(end_ns);
}

/// Others' sections may need a lock that this thread still has.
void Delegated::give_acquired() {
  const Client own = own_client();
  Thread& t = this_thread;
  const bool is_back = t.last_lock == number_ever() && t.is_outside();
  if (!Inside::any()) return give_outside(t, own, is_back);
  ++own.habit.inlined;
  auto_.give(own.seat.port);
}

Counters Delegated::counters() const {
  Counters sum;
  habits_.for_each([&](const Known& habit) {
    sum.inlined += habit.inlined.value();
    sum.delegated += habit.delegated.value();
    sum.combined += habit.combined.value();
    sum.waited += habit.waited.value();
    sum.switches += habit.switches.value();
  });
  return sum;
}

/// Who executes its sections, by what has become of most so far.
const char* Delegated::way(const Counters& c, bool has_server) const {
  const std::uint64_t all = c.inlined + c.delegated;
  const std::uint64_t by_server = c.delegated - std::min(c.combined, c.delegated);
  if (all == 0) return "none yet";
  if (always_delegates_) {
    if (!has_server) return "executed by their own clients: it has no server now";
    return "sent to the server: rcl does that with all, while it has one";
  }
  if (by_server * 2 > all) return "mostly sent to a server: clients meet at the lock";
  if (by_server * 10 > all) return "partly sent to a server: clients meet at times";
  if (c.combined * 10 > all) {
    return "combined: clients meet at the lock, and whoever has it executes for the others";
  }
  if (c.waited * 10 > all) {
    return "executed by their own clients, who wait for each other: sections may wait for "
           "conditions, so that only a server executes them for others";
  }
  if (c.delegated + c.waited + c.switches == 0)
    return "executed by their own clients: no contention so far";
  return "executed by their own clients: they seldom meet at the lock";
}

Choice Delegated::choice() const {
  const std::optional<unsigned> numa = station_->numa();
  const bool has_server = station_->has_server();
  return {traits().name.data(), way(counters(), has_server), has_server,
          has_server ? numa : std::nullopt, station_->cause(has_server)};
}

std::string Delegated::explain() const {
  const Counters c = counters();
  std::string text = AnyLock::explain();
  text += format("server: {}\n", station_->has_server() ? station_->describe() : "none");
  if (const std::string reason = station_->reason(); !reason.empty() && !always_delegates_) {
    text += format("server of its own accord: {}\n", reason);
  }
  if (!combining()()) text += "combining: off, since sections may wait for conditions\n";
  return text + format(
                    "executed by the client: {}\nexecuted by others: {}\n"
                    "of these by clients: {}\nchanges of way: {}\n",
                    c.inlined, c.delegated, c.combined, c.switches);
}

}  // namespace muster::delegation
