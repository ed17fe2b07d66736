// SPDX-License-Identifier: BSD-3-Clause
// A barrier of the C ABI under test.
#pragma once

#include <sched.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "muster/muster.h"
#include "trial.hpp"

namespace muster::test {

inline muster_options plain_options(unsigned participants, const char* algorithm = nullptr) {
  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  options.algorithm = algorithm;
  return options;
}

/// With a place for each rank where the algorithm serves only if that is known: two ranks to an
/// L3, so that few make a tree of several levels.
inline muster_options options_for(unsigned participants, const char* algorithm = nullptr) {
  muster_options options = plain_options(participants, algorithm);
  const std::string_view name = algorithm != nullptr ? algorithm : "";
  if (name.starts_with("topo") || name.starts_with("scheduled")) {
    options.topology = "package:4 l3:8 core:2 pu:1";
    options.map_by = "core";
  }
  return options;
}

inline std::string explain(const muster_barrier* barrier, const char* format = "text") {
  std::size_t needed = 0;
  if (muster_barrier_explain(barrier, format, nullptr, 0, &needed) != MUSTER_OK) return "";
  std::string text(needed, '\0');
  if (muster_barrier_explain(barrier, format, text.data(), text.size(), nullptr) != MUSTER_OK) {
    return "";
  }
  text.resize(needed - 1);
  return text;
}

/// The algorithm that serves, whatever was asked for: the second word of what explain says.
inline std::string serving(const muster_barrier* barrier) {
  std::istringstream words(explain(barrier));
  std::string algorithm;
  words >> algorithm >> algorithm;
  return algorithm;
}

class CapiSubject : public Subject {
 public:
  /// `declines`: another algorithm than the one asked for may serve.
  explicit CapiSubject(const muster_options& options, bool declines = false)
      : split_((options.flags & MUSTER_SPLIT) != 0) {
    if (muster_barrier_create(&handle_, &options) != MUSTER_OK) {
      throw std::runtime_error(muster_last_error());
    }
    // A test of one algorithm that another serves would say nothing.
    const std::string asked = options.algorithm != nullptr ? options.algorithm : "auto";
    const std::string serves = serving(handle_);
    if (!declines && asked != "auto" && asked != serves && asked != serves + ":2") {
      muster_barrier_destroy(handle_);
      throw std::runtime_error(asked + " was asked for, and " + serves + " serves");
    }
  }
  ~CapiSubject() override { muster_barrier_destroy(handle_); }
  CapiSubject(const CapiSubject&) = delete;
  CapiSubject& operator=(const CapiSubject&) = delete;

  muster_barrier* handle() const { return handle_; }
  unsigned participants() const override { return muster_barrier_participants(handle_); }
  std::string describe() const override { return explain(handle_); }

  /// Rank 0 always has a deadline, so that a hang ends the waits of all.
  std::string wait(unsigned rank, Random& random) override {
    int status = MUSTER_OK;
    if (rank == 0 || random.one_in(8)) {
      status = muster_barrier_timedwait(handle_, rank, patience_ns);
    } else if (split_ && random.one_in(2)) {
      status = muster_barrier_arrive(handle_, rank);
      if (random.one_in(4)) sched_yield();  // others' halves fall between these
      if (status == MUSTER_OK) status = muster_barrier_depart(handle_, rank);
    } else {
      status = muster_barrier_wait(handle_, rank);
    }
    if (status == MUSTER_OK) return "";
    return std::string(muster_strerror(status)) + ": " + muster_last_error();
  }

 private:
  muster_barrier* handle_ = nullptr;
  bool split_;
};

}  // namespace muster::test
