// SPDX-License-Identifier: BSD-3-Clause
#include "check/checked.hpp"

#include <algorithm>
#include <cstring>

namespace muster::check {

std::vector<Ordering> weakenings(Ordering order) {
  switch (order) {
    case Ordering::relaxed:
      return {};
    case Ordering::acquire:
    case Ordering::release:
      return {Ordering::relaxed};
    case Ordering::acq_rel:
      return {Ordering::acquire, Ordering::release};
    case Ordering::seq_cst:
      return {Ordering::acq_rel};
  }
  return {};
}

const char* ordering_name(Ordering order) {
  switch (order) {
    case Ordering::relaxed:
      return "relaxed";
    case Ordering::acquire:
      return "acquire";
    case Ordering::release:
      return "release";
    case Ordering::acq_rel:
      return "acq_rel";
    case Ordering::seq_cst:
      return "seq_cst";
  }
  return "?";
}

bool same_site(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

void Tuning::note(const Site& site, const char* what, Ordering order) {
  if (order == Ordering::relaxed) return;
  const bool known =
      std::any_of(accesses_.begin(), accesses_.end(),
                  [&](const OrderedAccess& access) { return same_site(access.site, site); });
  if (!known) accesses_.push_back({site, what, order});
}

Checked::Cells::Cells(Memory& memory, unsigned globals, unsigned ranks, unsigned per_rank,
                      const std::string& prefix)
    : shared_(std::make_shared<Shared>()) {
  shared_->globals = globals;
  shared_->per_rank = per_rank;
  const auto add = [&](const std::string& name) {
    shared_->cells.push_back({memory.add(0, prefix + name)});
  };
  for (unsigned i = 0; i < globals; ++i) add("global cell " + std::to_string(i));
  for (unsigned r = 0; r < ranks; ++r) {
    for (unsigned i = 0; i < per_rank; ++i) {
      add("cell " + std::to_string(i) + " of rank " + std::to_string(r));
    }
  }
}

}  // namespace muster::check
