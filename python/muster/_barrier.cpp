// SPDX-License-Identifier: BSD-3-Clause
// muster._barrier: what muster.Barrier is made of. Threads and processes come unnumbered, as to
// threading.Barrier: src/barrier/anyone.hpp in memory that processes share. Resets need what
// barriers do not have: that nobody is inside.
//
// Invariants:
// 1. Who touches the cells has said so in its seat, and has seen no reset going on after that.
// 2. A reset breaks the domain, so that all leave, and makes all new when all seats are empty.
// 3. A seat is one thread's at a time; the last one is that of all for whom there is none.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "barrier/anyone.hpp"
#include "machine/error.hpp"
#include "machine/hardware.hpp"
#include "machine/usable_cpus.hpp"
#include "memory/segment.hpp"
#include "wait/linger.hpp"

#ifndef Py_BEGIN_CRITICAL_SECTION  // the limited API's interpreters have one lock for all
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

namespace {

using muster::Anyone;
using muster::Breakage;
using muster::Error;
using muster::Hardware;
using muster::now_ns;
using muster::Segment;
using muster::Status;
using muster::WaitPolicy;
using muster::Word;

/// Lines apart, whatever a line is, within reason.
constexpr std::size_t apart = 256;

struct alignas(apart) Seat {
  std::atomic<Word> inside;  ///< threads: of the last seat any number, else one or none
};

/// In a segment, zero at first but for the number. Seats fill the rest of it.
struct Shared {
  alignas(apart) Hardware::Domain domain;
  alignas(apart) Hardware::Cell arrivals;
  Hardware::Cell opened;
  alignas(apart) std::atomic<Word> resets;  ///< twice their number, and one while one goes on
  std::atomic<Word> parties;
  std::atomic<Word> seats_taken;  ///< for good; when all are, the others share the last
};

/// Twice as many as wait together, since processes come and go; not more than a MiB of them.
constexpr std::size_t seats_for(unsigned parties) {
  return std::min<std::size_t>(2 * parties + 16, 4096);
}
std::span<Seat> seats_in(const Segment& segment) {
  auto* const first = reinterpret_cast<Seat*>(segment.data() + sizeof(Shared));
  return {std::launder(first), (segment.size() - sizeof(Shared)) / sizeof(Seat)};
}

/// What a waiting thread of this process has: how it waits, what it has learnt, and a seat.
struct Port {
  Hardware hardware;
  Seat* seat;
};
/// After a fork the parent's seats are the parent's.
unsigned forks = 0;
constexpr std::uint64_t layout_hash = 0x707974686f6e0002;
constexpr std::int64_t second_ns = 1'000'000'000;
/// What a killed process was inside of stays so.
constexpr std::int64_t reset_limit_ns = 5 * second_ns;
/// A waiting thread lets Python see signals this often.
constexpr std::int64_t signals_every_ns = second_ns / 20;

struct Barrier {
  PyObject_HEAD PyObject* action;  ///< or null
  PyObject* timeout;               ///< what waits take that say none; None or a number
  std::unique_ptr<Segment>* segment;
  std::unique_ptr<muster::FdServer>* name;
  std::vector<std::unique_ptr<Port>>* ports;  ///< that no thread waits with now
  unsigned forks;                             ///< before which these were made
};

Shared& shared_of(const Barrier* self) {
  return *std::launder(reinterpret_cast<Shared*>((*self->segment)->data()));
}

void raise(const Error& error) {
  switch (error.code()) {
    case Status::invalid:
    case Status::foreign:
      PyErr_SetString(PyExc_ValueError, error.what());
      break;
    case Status::no_memory:
      PyErr_SetString(PyExc_MemoryError, error.what());
      break;
    case Status::timeout:
      PyErr_SetString(PyExc_TimeoutError, error.what());
      break;
    default:
      PyErr_SetString(PyExc_OSError, error.what());
  }
}

/// threading's, of the interpreter that runs: each has its own.
void raise_broken() {
  PyObject* const threading = PyImport_ImportModule("threading");
  if (threading == nullptr) return;
  PyObject* const error = PyObject_GetAttrString(threading, "BrokenBarrierError");
  Py_DECREF(threading);
  if (error != nullptr) PyErr_SetNone(error);
  Py_XDECREF(error);
}

/// Null, with an exception, where __init__() did not make it.
Barrier* made(PyObject* object) {
  auto* const self = reinterpret_cast<Barrier*>(object);
  if (*self->segment != nullptr) return self;
  PyErr_SetString(PyExc_RuntimeError, "Barrier.__init__() was not called, or failed");
  return nullptr;
}

/// A call that takes the interpreter. Where that is ending, CPython up to 3.13 ends a daemon's
/// thread in there by pthread_exit(), which would unwind frames that are noexcept, and so abort the
/// process. Such a thread stands still instead, as CPython's own do from 3.14 on.
template <class Call>
auto with_interpreter(Call call) {
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  } catch (...) {
    std::terminate();
  }
}

/// The Python interpreter is not ours.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() {
    with_interpreter([&] { PyEval_RestoreThread(state_); });
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  /// It is for the time of a call.
  template <class Call>
  auto inside(Call call) {
    return with_interpreter([&] {
      PyEval_RestoreThread(state_);
      const auto result = call();
      state_ = PyEval_SaveThread();
      return result;
    });
  }

 private:
  PyThreadState* state_;
};

/// One wait. Its hooks are called while it lasts.
struct Waiting {
  PyObject* action;
  Released released{};
  std::int64_t next_signals_ns = now_ns() + signals_every_ns;

  static bool complete(void* context) {
    auto& self = *static_cast<Waiting*>(context);
    if (self.action == nullptr) return true;
    return self.released.inside([&] {
      PyObject* const result = PyObject_CallNoArgs(self.action);
      Py_XDECREF(result);
      return result != nullptr;
    });
  }
  static Word inspect(void* context, std::int64_t, std::int64_t now) {
    auto& self = *static_cast<Waiting*>(context);
    if (now < self.next_signals_ns) return 0;
    self.next_signals_ns = now + signals_every_ns;
    const bool interrupted = self.released.inside([] { return PyErr_CheckSignals() != 0; });
    return interrupted ? Breakage{Status::broken, 0}.encode() : 0;
  }
};

/// Unless a reset goes on.
bool enter(Shared& shared, Seat& seat) {
  // Sequentially consistent, as in make_new(): who is not seen inside sees the reset.
  seat.inside.fetch_add(1);
  if (shared.resets.load() % 2 == 0) return true;
  seat.inside.fetch_sub(1);
  return false;
}

bool is_anyone_inside(std::span<const Seat> seats) {
  return std::any_of(seats.begin(), seats.end(),
                     [](const Seat& seat) { return seat.inside.load() != 0; });
}

Anyone<Hardware> barrier_in(Shared& shared) {
  auto* const cells = reinterpret_cast<std::byte*>(&shared.arrivals);
  constexpr std::size_t stride = offsetof(Shared, opened) - offsetof(Shared, arrivals);
  return {{.participants = shared.parties.load(std::memory_order_relaxed)},
          {cells, nullptr, stride, 0, stride}};
}

/// Until all have come; false: it is broken. `place`: how many had come before. An exception may be
/// set in either case: a signal's handler runs in here.
bool pass(Shared& shared, Port& its, PyObject* action, std::int64_t deadline_ns, unsigned& place) {
  Waiting waiting{.action = action};
  Hardware& port = its.hardware;
  for (unsigned looks = 0; !enter(shared, *its.seat); ++looks) muster::linger(looks);
  bool passed = false;
  if (port.breakage().cause == Status::ok) {
    port.set_deadline(deadline_ns);
    port.set_hooks({.completion = action != nullptr ? Waiting::complete : nullptr,
                    .inspect = Waiting::inspect,
                    .context = &waiting});
    const Anyone<Hardware> barrier = barrier_in(shared);
    auto ticket = barrier.ticket(0);
    passed = barrier.wait(port, ticket);
    place = ticket.place;
    // Broken after it was over: that does not concern this episode.
    if (!passed && !ticket.was_last) {
      passed = muster::at_least(ticket.end)(port.load(shared.opened, muster::acquire));
    }
  }
  its.seat->inside.fetch_sub(1, std::memory_order_release);  // pairs with is_anyone_inside()
  return passed;
}

/// Absolute; false: an exception is set.
bool deadline_of(PyObject* timeout, std::int64_t& at_ns) {
  at_ns = WaitPolicy::forever;
  if (timeout == Py_None) return true;
  const double seconds = PyFloat_AsDouble(timeout);
  if (seconds == -1.0 && PyErr_Occurred() != nullptr) return false;
  if (std::isnan(seconds)) {
    PyErr_SetString(PyExc_ValueError, "the timeout is not a number");
    return false;
  }
  constexpr double longest = 1e9;  // 30 years
  if (seconds < longest) {
    at_ns = now_ns() + (seconds > 0 ? static_cast<std::int64_t>(seconds * 1e9) : 0);
  }
  return true;
}

std::unique_ptr<Port> make_port(const Barrier* self) {
  Shared& shared = shared_of(self);
  const std::span<Seat> seats = seats_in(**self->segment);
  const WaitPolicy policy =
      WaitPolicy::learning(shared.parties.load(), muster::usable_cpus(), false);
  auto port = std::make_unique<Port>(Port{Hardware(shared.domain, 0, policy, true), nullptr});
  const std::size_t number =
      shared.seats_taken.load() < seats.size() ? shared.seats_taken++ : seats.size();
  port->seat = &seats[std::min(number, seats.size() - 1)];
  return port;
}

/// One that no thread waits with now, or a new one; null: no memory.
std::unique_ptr<Port> take_port(Barrier* self) {
  std::unique_ptr<Port> port;
  Py_BEGIN_CRITICAL_SECTION(self);
  try {
    if (self->forks != forks) {
      self->forks = forks;
      self->ports->clear();
    }
    if (self->ports->empty()) {
      self->ports->reserve(self->ports->capacity() + 1);  // for give_port()
      port = make_port(self);
    } else {
      port = std::move(self->ports->back());
      self->ports->pop_back();
    }
  } catch (const std::bad_alloc&) {
    port = nullptr;
  }
  Py_END_CRITICAL_SECTION();
  return port;
}

void give_port(Barrier* self, std::unique_ptr<Port> port) {
  Py_BEGIN_CRITICAL_SECTION(self);
  self->ports->push_back(std::move(port));
  Py_END_CRITICAL_SECTION();
}

PyObject* wait(PyObject* object, PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"timeout", nullptr};
  Barrier* const self = made(object);
  if (self == nullptr) return nullptr;
  PyObject* timeout = Py_None;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:wait", const_cast<char**>(names),
                                  &timeout) == 0) {
    return nullptr;
  }
  std::int64_t deadline_ns = 0;
  if (!deadline_of(timeout == Py_None ? self->timeout : timeout, deadline_ns)) return nullptr;
  Shared& shared = shared_of(self);
  std::unique_ptr<Port> port = take_port(self);
  if (port == nullptr) return PyErr_NoMemory();
  const unsigned forks_before = forks;
  unsigned place = 0;
  Py_INCREF(object);
  const bool passed = pass(shared, *port, self->action, deadline_ns, place);
  if (forks_before == forks) give_port(self, std::move(port));  // an action may fork
  Py_DECREF(object);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (passed) return PyLong_FromUnsignedLong(place);
  raise_broken();
  return nullptr;
}

PyObject* abort(PyObject* object, PyObject*) {
  const Barrier* const self = made(object);
  if (self == nullptr) return nullptr;
  Hardware(shared_of(self).domain).break_domain({Status::broken, 0});
  Py_RETURN_NONE;
}

/// True once nobody is inside and all is as new.
bool make_new(Shared& shared, std::span<const Seat> seats) {
  const std::int64_t limit_ns = now_ns() + reset_limit_ns;
  Word resets = shared.resets.load();
  for (unsigned looks = 0;; ++looks) {
    if (resets % 2 == 0 && shared.resets.compare_exchange_weak(resets, resets + 1)) break;
    if (now_ns() > limit_ns) return false;
    muster::linger(looks);
    resets = shared.resets.load();
  }
  Hardware(shared.domain).break_domain({Status::broken, 0});
  bool all_left = true;
  for (unsigned looks = 0; is_anyone_inside(seats) && all_left; ++looks) {
    muster::linger(looks);
    all_left = now_ns() < limit_ns;
  }
  if (all_left) {
    new (&shared.domain) Hardware::Domain{};
    new (&shared.arrivals) Hardware::Cell{};
    new (&shared.opened) Hardware::Cell{};
  }
  shared.resets.store(resets + 2);
  return all_left;
}

PyObject* reset(PyObject* object, PyObject*) {
  const Barrier* const self = made(object);
  if (self == nullptr) return nullptr;
  const bool done = [&] {
    const Released released;
    return make_new(shared_of(self), seats_in(**self->segment));
  }();
  if (done) Py_RETURN_NONE;
  PyErr_SetString(PyExc_RuntimeError,
                  "the barrier stays broken: a process has died, or stands still, inside of it");
  return nullptr;
}

PyObject* parties(PyObject* object, void*) {
  const Barrier* const self = made(object);
  if (self == nullptr) return nullptr;
  return PyLong_FromUnsignedLong(shared_of(self).parties.load(std::memory_order_relaxed));
}

PyObject* n_waiting(PyObject* object, void*) {
  const Barrier* const self = made(object);
  if (self == nullptr) return nullptr;
  const Shared& shared = shared_of(self);
  const bool whole = Hardware::breakage_of(shared.domain).cause == Status::ok;
  const Word parties = shared.parties.load(std::memory_order_relaxed);
  const Word arrived = shared.arrivals.value.load() % Anyone<Hardware>::one_episode_of(parties);
  return PyLong_FromUnsignedLong(whole ? arrived : 0);
}

PyObject* broken(PyObject* object, void*) {
  const Barrier* const self = made(object);
  if (self == nullptr) return nullptr;
  const Shared& shared = shared_of(self);
  return PyBool_FromLong(Hardware::breakage_of(shared.domain).cause != Status::ok);
}

PyObject* fd(PyObject* object, void*) {
  const Barrier* const self = made(object);
  return self == nullptr ? nullptr : PyLong_FromLong((*self->segment)->fd());
}

void make(Barrier* self, unsigned count) {
  *self->segment = Segment::create(sizeof(Shared) + seats_for(count) * sizeof(Seat), layout_hash);
  auto* const shared = new ((*self->segment)->data()) Shared{};
  shared->parties.store(count);
}

void attach(Barrier* self, int descriptor) {
  *self->segment = Segment::attach(descriptor, layout_hash);
}

/// Takes the name, or what another process offers under it. Some of those may end meanwhile.
void make_named(Barrier* self, unsigned count, const std::string& name) {
  for (int tries = 0;; ++tries) {
    make(self, count);
    try {
      *self->name = std::make_unique<muster::FdServer>(name, (*self->segment)->fd());
      return;
    } catch (const Error& error) {
      if (error.code() != Status::busy) throw;
    }
    try {
      const int descriptor = muster::receive_fd(name, second_ns);
      const std::unique_ptr<const int, void (*)(const int*)> closes(
          &descriptor, [](const int* open) { close(*open); });
      return attach(self, descriptor);
    } catch (const Error& error) {
      if (error.code() != Status::timeout || tries == 5) throw;
    }
  }
}

int init(PyObject* object, PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"parties", "action", "timeout", "name", "fd", nullptr};
  auto* const self = reinterpret_cast<Barrier*>(object);
  long count = 0;
  PyObject* action = Py_None;
  PyObject* timeout = Py_None;
  const char* name = nullptr;
  int descriptor = -1;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "l|OO$zi:Barrier", const_cast<char**>(names),
                                  &count, &action, &timeout, &name, &descriptor) == 0) {
    return -1;
  }
  std::int64_t unused = 0;
  if (!deadline_of(timeout, unused)) return -1;
  if (count < 1 || count >= long{muster::participants_max}) {
    PyErr_Format(PyExc_ValueError, "%ld parties: there may be 1 to %u", count,
                 muster::participants_max - 1);
    return -1;
  }
  if (action != Py_None && PyCallable_Check(action) == 0) {
    PyErr_SetString(PyExc_TypeError, "the action cannot be called");
    return -1;
  }
  if (*self->segment != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "it has been made already");
    return -1;
  }
  try {
    const Released released;  // a name may have to be waited for
    if (descriptor >= 0) {
      attach(self, descriptor);
    } else if (name != nullptr) {
      make_named(self, static_cast<unsigned>(count), name);
    } else {
      make(self, static_cast<unsigned>(count));
    }
  } catch (const Error& error) {
    self->segment->reset();
    raise(error);
    return -1;
  } catch (const std::bad_alloc&) {
    self->segment->reset();
    PyErr_NoMemory();
    return -1;
  }
  const Word theirs = shared_of(self).parties.load();
  if (theirs != static_cast<Word>(count)) {
    PyErr_Format(PyExc_ValueError, "%ld parties, where who made the barrier said %u", count,
                 theirs);
    self->segment->reset();
    return -1;
  }
  Py_INCREF(timeout);
  Py_DECREF(self->timeout);  // the None that it was born with
  self->timeout = timeout;
  if (action != Py_None) {
    Py_INCREF(action);
    self->action = action;
  }
  return 0;
}

PyObject* make_object(PyTypeObject* type, PyObject*, PyObject*) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  auto* const self = reinterpret_cast<Barrier*>(allocate(type, 0));
  if (self == nullptr) return nullptr;
  self->segment = new (std::nothrow) std::unique_ptr<Segment>;
  self->name = new (std::nothrow) std::unique_ptr<muster::FdServer>;
  self->ports = new (std::nothrow) std::vector<std::unique_ptr<Port>>;
  self->forks = forks;
  Py_INCREF(Py_None);
  self->timeout = Py_None;
  if (self->segment != nullptr && self->name != nullptr && self->ports != nullptr) {
    return reinterpret_cast<PyObject*>(self);
  }
  Py_DECREF(self);
  return PyErr_NoMemory();
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  auto* const self = reinterpret_cast<Barrier*>(object);
  Py_VISIT(self->action);
  Py_VISIT(self->timeout);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

int clear(PyObject* object) {
  Py_CLEAR(reinterpret_cast<Barrier*>(object)->action);
  return 0;
}

void destroy(PyObject* object) {
  auto* const self = reinterpret_cast<Barrier*>(object);
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear(object);
  Py_CLEAR(self->timeout);
  delete self->ports;
  delete self->name;
  delete self->segment;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"wait", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(wait)),
     METH_VARARGS | METH_KEYWORDS,
     "wait(timeout=None)\n\nWaits until all parties have come. An int from 0 to parties - 1, a "
     "different one for each.\nRaises threading.BrokenBarrierError if the barrier is or gets "
     "broken, or after `timeout` seconds,\nwhich breaks it. Ctrl-C in a wait breaks it, too."},
    {"reset", reset, METH_NOARGS,
     "reset()\n\nMakes the barrier as new. Who waits gets BrokenBarrierError. RuntimeError after "
     "five seconds\nif a process has died while it waited."},
    {"abort", abort, METH_NOARGS,
     "abort()\n\nBreaks the barrier: who waits, and who comes before a reset, gets "
     "BrokenBarrierError."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"parties", parties, nullptr, "How many pass together.", nullptr},
                            {"n_waiting", n_waiting, nullptr, "How many wait now.", nullptr},
                            {"broken", broken, nullptr, "Whether it is broken.", nullptr},
                            {"_fd", fd, nullptr, "The segment's descriptor.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_object)},
                       {Py_tp_init, reinterpret_cast<void*>(init)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {0, nullptr}};

PyType_Spec spec = {"muster._barrier.Barrier", sizeof(Barrier), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

int fill(PyObject* module) {
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) return -1;
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
  return PyModule_AddObject(module, "Barrier", type);
}

PyModuleDef_Slot module_slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)},
#ifdef Py_GIL_DISABLED
                                   {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                   {0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "muster._barrier", nullptr, 0,      nullptr,
                          module_slots,          nullptr,           nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__barrier() { return PyModuleDef_Init(&definition); }
