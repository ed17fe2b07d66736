// SPDX-License-Identifier: BSD-3-Clause
// The C ABI's locks: handles around delegation/.
#include "muster/lock.h"

#include <cstring>
#include <memory>
#include <vector>

#include "capi/failure.hpp"
#include "delegation/condition.hpp"
#include "delegation/station.hpp"
#include "lock/registry.hpp"
#include "topology/pu_set.hpp"

struct muster_lock {
  std::unique_ptr<muster::delegation::AnyLock> lock;
};

struct muster_cond {
  explicit muster_cond(muster_lock& of) : condition(*of.lock) {}
  muster::delegation::Condition condition;
};

struct muster_server {
  std::shared_ptr<muster::delegation::Station> station;
};

namespace muster {
namespace {

using delegation::Section;

void require(bool holds, const char* message) {
  if (!holds) throw Error(Status::invalid, message);
}

std::vector<unsigned> cpus_of(const char* text) {
  return text == nullptr ? std::vector<unsigned>{} : PuSet::parse(text).to_vector();
}

Status put_text(const std::string& whole, char* text, size_t bytes, size_t* needed) {
  if (needed != nullptr) *needed = whole.size() + 1;
  if (text != nullptr && bytes > 0) {
    const size_t length = std::min(whole.size(), bytes - 1);
    std::memcpy(text, whole.data(), length);
    text[length] = '\0';
  }
  return Status::ok;
}

}  // namespace
}  // namespace muster

using muster::guarded;
using muster::Status;

const char* const* muster_lock_names(void) {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all;
    for (const std::string_view name : muster::locks::lock_names()) all.push_back(name.data());
    all.push_back(nullptr);
    return all;
  }();
  return names.data();
}

void muster_lock_options_init(muster_lock_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->size = sizeof *options;
}

size_t muster_lock_memory(void) { return muster::delegation::shared_lock_bytes(); }

int muster_lock_create(muster_lock** lock, const muster_lock_options* options) {
  return guarded([&] {
    muster::require(lock != nullptr, "no place for the lock's handle");
    muster::delegation::LockOptions made{.kind = "auto", .station = nullptr};
    if (options != nullptr) {
      muster::require(options->size == sizeof *options,
                      "initialise the options with muster_lock_options_init()");
      if (options->kind != nullptr) made.kind = options->kind;
      if (options->server != nullptr) made.station = options->server->station;
      made.shared_memory = options->memory;
      made.creates = options->attach == 0;
    }
    *lock = new muster_lock{muster::delegation::make_lock(made)};
    return Status::ok;
  });
}

int muster_execute(muster_lock* lock, muster_section section, void* argument) {
  return guarded([&] {
    muster::require(lock != nullptr && section != nullptr, "no lock, or no section");
    lock->lock->execute({section, argument});
    return Status::ok;
  });
}

int muster_post(muster_lock* lock, muster_section section, void* argument) {
  return guarded([&] {
    muster::require(lock != nullptr && section != nullptr, "no lock, or no section");
    lock->lock->post({section, argument});
    return Status::ok;
  });
}

int muster_lock_recover(muster_lock* lock, muster_section section, void* argument) {
  return guarded([&] {
    muster::require(lock != nullptr && section != nullptr, "no lock, or no section");
    lock->lock->recover({section, argument});
    return Status::ok;
  });
}

int muster_lock_get_counters(const muster_lock* lock, muster_lock_counters* counters) {
  return guarded([&] {
    muster::require(lock != nullptr && counters != nullptr,
                    "no lock, or no place for its counters");
    const muster::delegation::Counters all = lock->lock->counters();
    *counters = {all.inlined, all.delegated, all.combined, all.switches};
    return Status::ok;
  });
}

int muster_lock_explain(const muster_lock* lock, char* text, size_t bytes, size_t* needed) {
  return guarded([&] {
    muster::require(lock != nullptr, "no lock");
    return muster::put_text(lock->lock->explain(), text, bytes, needed);
  });
}

void muster_lock_destroy(muster_lock* lock) { delete lock; }

int muster_cond_create(muster_cond** cond, muster_lock* lock) {
  return guarded([&] {
    muster::require(cond != nullptr && lock != nullptr, "no lock, or no place for the handle");
    *cond = new muster_cond(*lock);
    return Status::ok;
  });
}

int muster_cond_wait(muster_cond* cond) {
  return guarded([&] {
    muster::require(cond != nullptr, "no condition");
    cond->condition.wait();
    return Status::ok;
  });
}

int muster_cond_timedwait(muster_cond* cond, int64_t timeout_ns) {
  return guarded([&] {
    muster::require(cond != nullptr && timeout_ns >= 0, "no condition, or a negative timeout");
    return cond->condition.wait(timeout_ns) ? Status::ok : Status::timeout;
  });
}

int muster_cond_signal(muster_cond* cond) {
  return guarded([&] {
    muster::require(cond != nullptr, "no condition");
    cond->condition.signal();
    return Status::ok;
  });
}

int muster_cond_broadcast(muster_cond* cond) {
  return guarded([&] {
    muster::require(cond != nullptr, "no condition");
    cond->condition.broadcast();
    return Status::ok;
  });
}

void muster_cond_destroy(muster_cond* cond) { delete cond; }

int muster_server_start(muster_server** server, const char* cpus, int realtime) {
  return guarded([&] {
    muster::require(server != nullptr, "no place for the server's handle");
    auto station = std::make_shared<muster::delegation::Station>();
    station->start({.cpus = muster::cpus_of(cpus), .realtime = realtime != 0});
    *server = new muster_server{std::move(station)};
    return Status::ok;
  });
}

int muster_server_place(muster_server* server, const char* cpus) {
  return guarded([&] {
    muster::require(server != nullptr, "no server");
    server->station->place(muster::cpus_of(cpus));
    return Status::ok;
  });
}

int muster_server_explain(const muster_server* server, char* text, size_t bytes, size_t* needed) {
  return guarded([&] {
    muster::require(server != nullptr, "no server");
    return muster::put_text("server " + server->station->describe() + "\n", text, bytes, needed);
  });
}

int muster_server_stop(muster_server* server) {
  return guarded([&] {
    if (server == nullptr) return Status::ok;
    server->station->stop();
    delete server;
    return Status::ok;
  });
}
