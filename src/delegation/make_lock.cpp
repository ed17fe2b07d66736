// SPDX-License-Identifier: BSD-3-Clause
// The locks that need no server's runtime: the templates of src/lock over hardware, each in memory
// of its own.
#include "delegation/make_lock.hpp"

#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "delegation/delegated.hpp"
#include "delegation/kept.hpp"
#include "delegation/places.hpp"
#include "delegation/robust_lock.hpp"
#include "delegation/station.hpp"
#include "delegation/work.hpp"
#include "lock/registry.hpp"

namespace muster::delegation {
namespace {

/// Hardware with the cells of one lock: a line for each slot, its cells packed and its request
/// behind them.
class PlainPort : public Port {
 public:
  using Port::Port;
  using Cells = FixedCells<line_bytes, sizeof(Cell)>;
};

/// Requests of slots of a line each, behind their cells.
using PlainBoard = Board<BoardShape{
    .stride = line_bytes, .spacing = 0, .group_bits = 0, .errors_at = sizeof(Request)}>;

template <class L>
class Memory {
 public:
  explicit Memory(const locks::Shape& shape)
      : layout_(L::layout(shape)),
        bytes_((1 + layout_.global_cells + std::size_t{layout_.slots}) * line_bytes) {}

  Hardware::Domain& domain() const { return *reinterpret_cast<Hardware::Domain*>(bytes_.data()); }
  PlainPort::Cells cells() const { return {bytes_.data() + line_bytes, slots()}; }
  PlainBoard board() const {
    return {.first = slots() + layout_.cells_per_slot * sizeof(Hardware::Cell)};
  }

 private:
  std::byte* slots() const { return bytes_.data() + (1 + layout_.global_cells) * line_bytes; }

  locks::Layout layout_;
  Reserved bytes_;
};

template <class L>
constexpr bool is_direct = L::traits.style == locks::Style::direct;
template <class L>
constexpr bool has_try = requires(const L& lock, PlainPort& port, typename L::Ticket& ticket) {
  lock.try_acquire(port, ticket);
};
template <class L>
constexpr bool has_parts = std::is_base_of_v<locks::Combining<L>, L>;
template <class L>
constexpr bool has_clusters = requires(const L& lock) {
  lock.ticket(0U, 0U);
};
template <class L>
constexpr bool has_readers = requires(const L& lock, PlainPort& port, typename L::Ticket& ticket) {
  lock.acquire_shared(port, ticket);
};
template <class L>
constexpr bool has_server = L::traits.style == locks::Style::server;

/// A lock of src/lock on hardware.
template <class L>
class Plain : public AnyLock {
 public:
  explicit Plain(const locks::Shape& shape)
      : AnyLock(L::traits, execute_at_once),
        memory_(shape),
        board_(memory_.board()),
        lock_(shape, memory_.cells()),
        clients_in_(has_clusters<L> ? shape.clusters : 0) {
    static_assert(sizeof(Hardware::Domain) <= line_bytes);
    if constexpr (has_readers<L>) readers_ = std::make_unique<Readers>();
    if constexpr (requires(PlainPort & m) { lock_.prepare(m); }) {
      PlainPort port(memory_.domain(), 0);
      lock_.prepare(port);
    }
    if constexpr (has_server<L>) {
      PlainPort port(memory_.domain(), 0);
      lock_.start(port);
      const NoSignals its_own;
      server_ = std::make_unique<std::thread>([this] { serve(); });
    }
  }

  ~Plain() override {
    if constexpr (has_server<L>) {
      PlainPort port(memory_.domain(), 0);
      if (!in_own_process()) {
        static_cast<void>(server_.release());  // the parent's: never joined here
        return;
      }
      lock_.stop(port);
      server_->join();
    }
  }

  void execute(Section section) override {
    Thread& t = this_thread;
    if (!is_outside(t) || (t.last_lock != number_ever() && !comes_back(t))) [[unlikely]]
      return execute_anywhere(section);
    t.quick = number_ever();
    execute_quickly(section);
  }

  void execute_shared(Section section) override {
    if constexpr (has_readers<L>) {
      read(section);
    } else {
      execute(section);
    }
  }

  void give_up() override {
    if constexpr (is_direct<L>) {
      Seat& seat = own_seat();
      lock_.release(seat.port, seat.ticket);
    } else {
      AnyLock::give_up();
    }
  }
  bool take_again() override {
    if constexpr (is_direct<L>) {
      Seat& seat = own_seat();
      lock_.acquire(seat.port, seat.ticket);
    }
    return true;
  }
  void allow_conditions() override {
    if constexpr (!is_direct<L>) AnyLock::allow_conditions();
  }
  std::string explain() const override {
    std::string text = AnyLock::explain();
    if constexpr (has_clusters<L>) {
      text +=
          "clusters: " + std::to_string(clients_in_.size()) + ", by NUMA node; clients in them:";
      for (const auto& clients : clients_in_) text += " " + std::to_string(clients.load());
      text += "\n";
    }
    return text;
  }

 protected:
  bool try_take(bool again) override {
    if constexpr (has_try<L>) {
      Seat& seat = own_seat();
      return lock_.try_acquire(seat.port, seat.ticket);
    } else {
      return AnyLock::try_take(again);
    }
  }

 private:
  struct Seat {
    PlainPort port;
    typename L::Ticket ticket;
    int thread_id = 0;               ///< of which the cluster is known
    std::vector<Kept::Post> left{};  ///< of its section, by the server
  };

  /// What a thread is inside of in a section that others may be in, too.
  class Readers final : public AnyLock {
   public:
    Readers() : AnyLock(L::traits) {}
    void execute(Section) override { throw Error(Status::unsupported, "these are no sections"); }
  };

  /// A section of the calling thread, and no other one executes it.
  void read(Section section) {
    admit();
    Thread& t = this_thread;
    t.quick = 0;
    const unsigned process = generation();
    Seat& seat = own_seat();
    choose_cluster(seat, first_seat());
    const int before = *t.error;
    static_cast<void>(lock_.acquire_shared(seat.port, seat.ticket));
    set_errno(t, before);  // waiting may have changed it
    std::optional<Inside> inside(std::in_place, readers_.get(), false);
    section.run_own([&] {
      inside.reset();
      const int left = *t.error;
      if (process == generation()) [[likely]]  // else a fork's child, which is no reader
        lock_.release_shared(seat.port, seat.ticket);
      set_errno(t, left);
      send_kept_posts();
    });
  }

  static bool is_outside(const Thread& t) {
    return t.depth == 0 && t.inside == nullptr && t.outer == nullptr;
  }

  /// AnyLock::short_way().
  [[gnu::flatten]] static int execute_at_once(AnyLock& lock, Section section, Execute otherwise) {
    // In a section `quick` is of that one's lock or of one around it.
    if (this_thread.inside != nullptr) [[unlikely]]
      return otherwise(lock, section);
    static_cast<Plain&>(lock).execute_quickly(section);
    return 0;
  }
  /// Of a thread that is outside of all sections and has used this lock last.
  [[gnu::always_inline]] void execute_quickly(Section section) {
    Thread& t = this_thread;
    if constexpr (is_direct<L>) {
      execute_directly(t, section);
    } else if constexpr (has_parts<L>) {
      if (!lock_.take(last_seat(t).port, last_seat(t).ticket)) return delegate(section);
      run_at_once(
          t, section, [&t]() __attribute__((always_inline)) {
            // All is read again, the lock too: what lives across the section has to be saved
            // before it.
            auto& lock = static_cast<Plain&>(*t.inside);
            if (lock.has_left_posts(t) || !lock.lock_.give(last_seat(t).port, last_seat(t).ticket))
                [[unlikely]]
              return see_to_others(t);
            t.inside = nullptr;
          });
    } else {
      delegate(section);
    }
  }
  /// From outside of all sections, after other locks: whether the thread has used this one before.
  bool comes_back(Thread& t) {
    if (t.serving != nullptr || t.seats == 0 || !in_own_process()) return false;
    Seat* const seat = seats_.find(t.first);
    if (seat == nullptr) return false;
    choose_cluster(*seat, t.first);
    t.quick = 0;
    t.last_lock = number_ever();
    t.last_seat = seat;
    t.last_habit = nullptr;
    return true;
  }
  /// What the thread has here, if it used this lock last.
  static Seat& last_seat(const Thread& t) { return *static_cast<Seat*>(t.last_seat); }

  [[gnu::always_inline]] void execute_directly(Thread& t, Section section) {
    const int before = *t.error;
    static_cast<void>(lock_.acquire(last_seat(t).port, last_seat(t).ticket));
    set_errno(t, before);  // waiting may have changed it
    run_at_once(
        t, section, [ this, &t ]() __attribute__((always_inline)) {
          run_deferred();
          const int left = *t.error;
          if (in_own_process()) [[likely]]  // in a fork's child who waits behind it is not there
            lock_.release(last_seat(t).port, last_seat(t).ticket);
          t.inside = nullptr;
          set_errno(t, left);
          send_kept_posts();
        });
  }
  static void set_errno(const Thread& t, int error) {
    if (*t.error != error) [[unlikely]]
      *t.error = error;
  }
  [[gnu::noinline]] void delegate(Section section) {
    const NoCancellation whole;
    Seat& seat = last_seat(this_thread);
    ClientsWork<Outermost> work(section, board_, this);
    if constexpr (has_parts<L>) {
      lock_.delegate(seat.port, seat.ticket, work);
    } else {
      lock_.execute(seat.port, seat.ticket, work);
    }
    work.finish();
    if constexpr (has_server<L>) adopt_posts(seat.left);
    send_kept_posts();
  }
  bool has_left_posts(const Thread& t) const { return has_deferred() || t.todo != 0; }
  /// After a section that was executed at once: it has left posts, or there are others' requests.
  [[gnu::noinline]] static void see_to_others(Thread& t) {
    const NoCancellation whole;
    auto& lock = static_cast<Plain&>(*t.inside);
    Seat& seat = last_seat(t);
    if (lock.has_left_posts(t)) {
      lock.run_deferred();
      if (lock.lock_.give(seat.port, seat.ticket)) return end_visit(t);
    }
    // In a fork's child the others are not there: their requests are their own process's.
    if (lock.in_own_process()) {
      ClientsWork<Outermost> work({}, lock.board_, &lock);
      lock.lock_.serve(seat.port, seat.ticket, work);
      work.finish();
    }
    end_visit(t);
  }
  static void end_visit(Thread& t) {
    t.inside = nullptr;
    send_kept_posts();
  }

  /// From inside of other sections, too, and for the first time.
  [[gnu::noinline]] void execute_anywhere(Section section) {
    admit();
    if (execute_nested_in(section)) return;
    const NoCancellation whole;
    {
      const Depth depth;
      Seat& seat = is_direct<L> ? own_seat() : seat_of(depth.seat());
      choose_cluster(seat, depth.seat());
      depth.remember(number_ever(), &seat, nullptr);
      ClientsWork<Inside> work(section, board_, this);
      lock_.execute(seat.port, seat.ticket, work);
      work.finish();
      if constexpr (has_server<L>) adopt_posts(seat.left);
    }
    send_kept_posts();  // by the seat that the thread's next requests come from
  }

  Seat& seat_of(unsigned number) {
    return seats_.of(number, [&] {
      return Seat{PlainPort(memory_.domain(), number), lock_.ticket(number)};
    });
  }
  /// A client's cluster is the NUMA node on which its thread first needs the lock.
  void choose_cluster(Seat& seat, unsigned number) {
    if constexpr (has_clusters<L>) {
      const int thread_id = this_thread.id;
      if (seat.thread_id == thread_id) [[likely]]
        return;
      if (seat.thread_id != 0) clients_in_[seat.ticket.cluster].fetch_sub(1);
      seat.thread_id = thread_id;
      seat.ticket.cluster = Places::instance().numa_of_this_thread(number);
      clients_in_[seat.ticket.cluster].fetch_add(1);
    }
  }
  /// Of a thread that has the lock, or waits for it, with nothing left for others to execute: so
  /// it needs no other seat in sections.
  Seat& own_seat() { return seat_of(first_seat()); }

  /// In a fork's child, back from its own section, the others are not there: what they want is
  /// their own process's, and whoever is to come next never does.
  template <class Where>
  class ClientsWork : public WorkFrom<Where, PlainBoard> {
   public:
    using WorkFrom<Where, PlainBoard>::WorkFrom;
    void run_own(Port& port) noexcept {
      WorkFrom<Where, PlainBoard>::run_own(port);
      if (!this->lock_->in_own_process()) [[unlikely]]
        port.break_domain({Status::peer, 0});
    }
    void run(Port& port, unsigned slot) noexcept {
      if (this->lock_->in_own_process()) [[likely]]
        WorkFrom<Where, PlainBoard>::run(port, slot);
    }
  };

  /// Leaves a section's posts to its client: the server has the lock, for which their executors may
  /// wait, and no spare.
  class ServerWork : public WorkFrom<Inside, PlainBoard> {
   public:
    explicit ServerWork(Plain& lock) : WorkFrom({}, lock.board_, &lock), served_(lock) {}
    void run(Port& port, unsigned slot) noexcept {
      WorkFrom::run(port, slot);
      if (this_thread.todo != 0) [[unlikely]]
        served_.seats_.find(slot)->left = leave_kept_posts();
    }

   private:
    Plain& served_;
  };

  void serve() {
    if constexpr (has_server<L>) {
      this_thread.error = &errno;
      PlainPort port(memory_.domain(), 0);
      ServerWork work(*this);
      lock_.serve(port, work);
    }
  }

  Memory<L> memory_;
  PlainBoard board_;
  L lock_;
  std::vector<std::atomic<unsigned>> clients_in_;  ///< by cluster
  PerSeat<Seat> seats_;
  std::unique_ptr<std::thread> server_;
};

/// The C library's mutex.
class Pthread final : public AnyLock {
 public:
  Pthread() : AnyLock(locks::PthreadMutex::traits) {}

  void execute(Section section) override {
    admit();
    mutex_.acquire();
    run_taken(section);
  }
  void give_up() override { mutex_.release(); }
  bool take_again() override {
    mutex_.acquire();
    return true;
  }
  void allow_conditions() override {}

 protected:
  bool try_take(bool) override { return mutex_.try_acquire(); }

 private:
  locks::PthreadMutex mutex_;
};

}  // namespace

std::size_t shared_lock_bytes() { return sizeof(RobustMemory); }

std::unique_ptr<AnyLock> make_lock(const LockOptions& options) {
  const locks::Traits& traits = locks::traits_of(options.kind);
  const bool has_turns =
      traits.name == locks::Rcl<Port>::traits.name || traits.name == locks::Auto<Port>::traits.name;
  if (options.turn_ns != 0 && !has_turns) {
    throw Error(Status::unsupported,
                options.kind + ": only auto and rcl have turns that can be set");
  }
  if (options.shared_memory != nullptr && traits.name != shared_kind) {
    throw Error(Status::unsupported,
                options.kind + ": it is one process's; between processes use " + shared_kind);
  }
  if (traits.name == locks::PthreadMutex::traits.name) return std::make_unique<Pthread>();
  register_heavy_fence(false);
  if (has_turns) {
    return std::make_unique<Delegated>(
        traits, options.station, options.turn_ns != 0 ? options.turn_ns : locks::Visit::usual_ns);
  }
  return locks::with_lock<PlainPort>(options.kind, [&]<class L>() -> std::unique_ptr<AnyLock> {
    if constexpr (std::is_same_v<L, locks::Robust<PlainPort>>) {
      return std::make_unique<RobustLock>(options.shared_memory, options.creates);
    } else {
      // Who is head next may notice only some microseconds later: seldom.
      locks::Shape shape{.clients = seats_max, .limit = 256};
      if constexpr (has_clusters<L>) {
        shape.clusters = static_cast<unsigned>(Places::instance().tree().numa_nodes().size());
      }
      return std::make_unique<Plain<L>>(shape);
    }
  });
}

}  // namespace muster::delegation
