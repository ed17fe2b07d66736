// SPDX-License-Identifier: BSD-3-Clause
// Everything that can be measured, by name: our own barriers, the references `limit` and
// `ping-pong`, and the peers people use today.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.hpp"

namespace muster::bench {

enum class Mode { threads, processes };
std::string_view mode_name(Mode mode);
/// Throws Error(unknown_name).
Mode parse_mode(std::string_view name);
std::vector<std::string> mode_names();

/// What a contestant is made for.
struct Setting {
  unsigned participants = 2;
  Mode mode = Mode::threads;
  std::string algorithm;              ///< of ours, else unused
  std::string wait = "auto";          ///< of ours, else unused
  std::vector<std::string> bindings;  ///< of ours: where each rank is, as PU lists; empty: unknown
  std::string map_by;                 ///< of ours, instead: on the topology that the user imposes
  std::string topology;               ///< that topology; empty: MUSTER_TOPOLOGY, else this machine
  bool oversubscribed = false;        ///< more participants than usable CPUs
  bool through_template = false;      ///< ours without the C interface
};

/// One implementation with its shared state, made once per team, by its root process, before the
/// participants exist. Then each participant calls serve(), in its own thread, or process, where
/// the object is a copy made by fork: shared state has to be in SharedArray or the like.
class Contestant {
 public:
  Contestant() = default;
  virtual ~Contestant() = default;
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;

  /// `participant.serve(wait)`, where wait() is one episode of rank `rank`.
  virtual void serve(Participant& participant, unsigned rank) = 0;
  /// What serves behind an "auto", for people; may be empty.
  virtual std::string note() const { return {}; }
};

/// Memory that forked processes share; zeroed.
class SharedBytes {
 public:
  /// Throws Error(no_memory).
  explicit SharedBytes(std::size_t bytes);
  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

template <class T>
class SharedArray {
 public:
  explicit SharedArray(std::size_t count) : bytes_(count * sizeof(T)) {
    for (std::size_t i = 0; i < count; ++i) new (bytes_.data() + i * sizeof(T)) T{};
  }
  T& operator[](std::size_t i) const {
    return *std::launder(reinterpret_cast<T*>(bytes_.data()) + i);
  }

 private:
  SharedBytes bytes_;
};

using Maker = std::unique_ptr<Contestant> (*)(const Setting&);

/// Something other than our own barriers.
struct Other {
  enum Kind { peer, reference, hidden };
  std::string_view name;
  Kind kind;
  bool threads;                ///< can run in Mode::threads
  bool processes;              ///< can run in Mode::processes
  unsigned only_participants;  ///< 0: any number
  Maker make;                  ///< null: a worker program, or left out of this build
  std::string_view worker;     ///< the program's file name; empty if not a worker
  std::string_view package;  ///< the Debian packages that bring what is missing; empty: it is here
  std::string_view about;    ///< what it is and how it is set up
};

/// All of them, in the order in which they are listed.
const std::vector<Other>& others();

/// Why this build or machine cannot run it, and what to do; empty if it can.
std::string why_missing(const Other& other);

/// Ours: through the C interface, or over the templates. Throws Error: what creating the barrier
/// throws. note() has two lines: the algorithm that serves, and the wait policy.
std::unique_ptr<Contestant> make_muster(const Setting& setting);
/// "base-linear" and the like, which are measured where they are asked for by name.
bool is_over_messages(std::string_view algorithm);

}  // namespace muster::bench
