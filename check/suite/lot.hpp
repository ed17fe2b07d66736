// SPDX-License-Identifier: BSD-3-Clause
// What the lots have in common that wait/sleep.hpp and what stands on it take, where nobody dies.
// The fences can be weakened.
#pragma once

#include "check/checked.hpp"

namespace muster::check {

struct Lot {
  using Atom = Checked::Cell;

  Thread& thread;
  Tuning& tuning;

  Word add(const Checked::Cell& cell, Word delta, Site site = Site::here()) {
    return thread.fetch_add(cell.location, delta, Ordering::relaxed, site);
  }
  Word peek(const Checked::Cell& cell, Site site = Site::here()) {
    return thread.load(cell.location, Ordering::relaxed, site);
  }
  void replace(const Checked::Cell& cell, Word from, Word to, Site site = Site::here()) {
    thread.compare_exchange(cell.location, from, to, Ordering::relaxed, site);
  }
  void light_fence(Site site = Site::here()) { fence("light fence", Ordering::light, site); }
  void heavy_fence(Site site = Site::here()) { fence("heavy fence", Ordering::heavy, site); }
  void full_fence(Site site = Site::here()) { fence("full fence", Ordering::seq_cst, site); }
  static bool asks_for_fences() { return false; }
  static bool tired() { return true; }

 private:
  void fence(const char* what, Ordering order, Site site) {
    const Ordering tuned = tuning.order_at(site, what, order);
    if (tuned != Ordering::relaxed) thread.fence(tuned, site);
  }
};

}  // namespace muster::check
