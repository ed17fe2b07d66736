// SPDX-License-Identifier: BSD-3-Clause
#include "check/checked.hpp"

#include <algorithm>

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
    case Ordering::light:
      return {Ordering::relaxed};
    case Ordering::heavy:
      return {Ordering::seq_cst};
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
    case Ordering::light:
      return "light";
    case Ordering::heavy:
      return "heavy";
  }
  return "?";
}

std::string_view path_in_tree(std::string_view file) {
  // Absolute, relative or mapped, as ccache's base_dir and -ffile-prefix-map have it, and not alike
  // in all of a build: no file's name tells where the root is in another's. Where accesses stand is
  // below these folders, and below them are no others of these names, so the last one counts.
  std::size_t start = 0;
  for (const std::string_view top : {"/src/", "/check/suite/", "/test/"}) {
    const std::size_t at = file.rfind(top);
    if (at != std::string_view::npos) start = std::max(start, at + 1);
  }
  return file.substr(start);
}

bool same_site(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || path_in_tree(a.file) == path_in_tree(b.file));
}

Ordering Tuning::find_order(const OrderedAccess& access) {
  const auto same = [&](const OrderedAccess& other) {
    return same_site(other.site, access.site) && other.order == access.order &&
           std::string_view(other.what) == access.what;
  };
  if (std::ranges::none_of(accesses_, same)) accesses_.push_back(access);
  const bool is_weakened = weakened_.site.file != nullptr && same_site(access.site, weakened_.site);
  return is_weakened ? weakened_.order : access.order;
}

Checked::Cells::Cells(Memory& memory, unsigned globals, unsigned ranks, unsigned per_rank,
                      const std::string& prefix, unsigned words)
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
  for (unsigned i = 0; i < words; ++i) {
    shared_->words.push_back({memory.add(0, prefix + "word " + std::to_string(i))});
  }
}

}  // namespace muster::check
