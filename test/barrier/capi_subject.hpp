// SPDX-License-Identifier: BSD-3-Clause
// A barrier of the C ABI under test.
#pragma once

#include <string>
#include <utility>

#include "muster/muster.h"
#include "trial.hpp"

namespace muster::test {

/// How long a rank waits before the test takes it for a hang.
inline constexpr std::int64_t patience_ns = (reduced ? 80 : 20) * std::int64_t{1'000'000'000};

inline muster_options options_for(unsigned participants, const char* algorithm = nullptr) {
  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  options.algorithm = algorithm;
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

class CapiSubject : public Subject {
 public:
  explicit CapiSubject(const muster_options& options)
      : split_((options.flags & MUSTER_SPLIT) != 0) {
    if (muster_barrier_create(&handle_, &options) != MUSTER_OK) {
      throw std::runtime_error(muster_last_error());
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
