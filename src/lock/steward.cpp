// SPDX-License-Identifier: BSD-3-Clause
#include "lock/steward.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

namespace muster::locks {
namespace {

/// CPUs that threads keep busy; a thread that is seldom interrupted counts as one.
unsigned wanted_cpus(const Steward::Look& now) {
  const double busy = std::ceil(now.threads_cpus - 0.3);
  return std::max(now.clients, busy > 0 ? static_cast<unsigned>(busy) : 0);
}

double per_second(std::uint64_t before, std::uint64_t after, double seconds) {
  return static_cast<double>(after - before) / seconds;
}

}  // namespace

void Steward::Look::add(const Pace& pace, Seen& seen, unsigned place) {
  const Seen before = std::exchange(seen, {pace.sections.value(), pace.ns.value()});
  if (seen.ns <= before.ns) return;
  const double rate =
      per_second(before.sections, seen.sections, static_cast<double>(seen.ns - before.ns) / 1e9);
  if (!combiner || rate > combiner->sections_per_s) combiner = {place, rate};
}

Steward::Advice Steward::look(const Look& now) {
  const Look last = std::exchange(last_, now);
  const double seconds = static_cast<double>(now.now_ns - last.now_ns) / 1e9;
  if (last.now_ns == 0 || seconds <= 0) return Advice::stay;  // nothing to compare with
  const double sections = per_second(last.sections, now.sections, seconds);
  const bool meet =
      now.clients >= 2 && per_second(last.meets, now.meets, seconds) >= rules_.meets_per_s;
  return serving_ ? with_server(now, meet) : without_server(now, meet, sections);
}

Steward::Advice Steward::without_server(const Look& now, bool meet, double sections_per_s) {
  const bool is_faster =
      now.combiner && (!fastest_ || now.combiner->sections_per_s > fastest_->sections_per_s);
  if (is_faster) fastest_ = now.combiner;
  const char* against = nullptr;
  if (!meet) {
    against = starts_ == 0 ? "clients do not meet often" : "clients do not meet often any more";
  } else if (wanted_cpus(now) >= now.usable_cpus) {
    against = "no CPU is free beside the clients";
  } else if (now.now_ns < away_until_ns_) {
    return Advice::stay;  // for the reason for which it left
  }
  if (against != nullptr) {
    set_why(against);
    streak_ = 0;
    return Advice::stay;
  }
  if (streak_ == 0 && fastest_) combined_at_ = now.combiner.value_or(*fastest_).place;
  // The first look of a streak began before it.
  sections_per_s_ = streak_ == 0 ? sections_per_s : std::max(sections_per_s_, sections_per_s);
  if (++streak_ < rules_.looks_to_start) return Advice::stay;
  set_why("clients meet, and a CPU is free");
  streak_ = 0;
  serving_ = true;
  if (std::exchange(is_full_, false)) {  // anew: the data may have moved
    is_near_ = false;
    fastest_ = now.combiner;
  }
  if (knows_best_ && now.now_ns - best_since_ns_ > rules_.away_max_ns) {  // likewise
    tried_.clear();
    knows_best_ = false;
  }
  ++starts_;
  trial_left_ = rules_.trial_looks;
  served_since_ns_ = now.now_ns;
  return Advice::start;
}

Steward::Advice Steward::with_server(const Look& now, bool meet) {
  if (wanted_cpus(now) >= now.usable_cpus) return leave(now, "the clients need its CPU", true);
  taken_ = now.server_cpus < rules_.server_cpus ? taken_ + 1 : 0;
  if (taken_ >= 2) return leave(now, "others take its CPU", true);
  streak_ = meet ? 0 : streak_ + 1;
  if (streak_ >= rules_.looks_to_leave) return leave(now, "clients no longer meet", false);
  if (trial_left_ == 0 || !meet) return Advice::stay;
  if (trial_left_ == rules_.trial_looks) trial_began_ = now;
  if (--trial_left_ > 0) return Advice::stay;
  return end_trial(now);
}

Steward::Advice Steward::end_trial(const Look& now) {
  const double seconds = static_cast<double>(now.now_ns - trial_began_.now_ns) / 1e9;
  const double sections_per_s = per_second(trial_began_.sections, now.sections, seconds);
  ratio_ = sections_per_s / sections_per_s_;
  const bool gains = !(ratio_ < rules_.trial_ratio);
  if (!knows_best_ && now.server && (gains || !tried_.empty())) {
    tried_.push_back({*now.server, sections_per_s});
    if (now.untried && sections_per_s < rules_.far_sections_per_s) {
      return move(now, *now.untried, "one on another NUMA node is tried");
    }
    knows_best_ = true;
    best_since_ns_ = now.now_ns;
    const Executor& best = *std::max_element(
        tried_.begin(), tried_.end(),
        [](const Executor& a, const Executor& b) { return a.sections_per_s < b.sections_per_s; });
    if (best.place != *now.server &&
        (!gains || sections_per_s < rules_.trial_ratio * best.sections_per_s)) {
      return move(now, best.place, "one on another NUMA node was faster");
    }
  }
  if (gains) return Advice::stay;
  next_.reset();
  is_near_ = !now.server_is_near;
  if (!is_near_) fastest_.reset();
  return leave(now, "sections were slower with it", !is_near_);
}

Steward::Advice Steward::move(const Look& now, unsigned to, const char* why) {
  next_ = to;
  is_near_ = false;
  return leave(now, why, false);
}

Steward::Advice Steward::leave(const Look& now, const char* why, bool stays_away) {
  set_why(why);
  streak_ = 0;
  taken_ = 0;
  serving_ = false;
  ++leaves_;
  if (now.now_ns - served_since_ns_ > 10 * away_ns_) away_ns_ = rules_.away_ns;
  if (stays_away) {
    pass_over();
    stay_away(now.now_ns);
  }
  return Advice::leave;
}

void Steward::pass_over() noexcept {
  if (!next_) return;
  try {
    tried_.push_back({*next_, 0});
  } catch (const std::bad_alloc&) {
    knows_best_ = true;  // else it would be tried again and again
  }
  next_.reset();
}

void Steward::stay_away(std::int64_t now_ns) {
  away_until_ns_ = now_ns + away_ns_;
  away_ns_ = std::min(2 * away_ns_, rules_.away_max_ns);
}

void Steward::no_server(std::int64_t now_ns, const char* why, const char* error) noexcept {
  set_why(why);
  try {
    error_ = error;
  } catch (const std::bad_alloc&) {
    error_.clear();  // which may be the error that this would tell of
  }
  streak_ = 0;
  serving_ = false;
  pass_over();
  is_full_ = is_near_;
  if (is_full_) return stay_away(now_ns);
  fastest_.reset();
  away_until_ns_ = now_ns + away_ns_;
}

std::string Steward::why() const {
  std::string text = why_;
  if (!error_.empty()) text += ": " + error_;
  if (ratio_ > 0) {
    const auto hundredths = static_cast<unsigned>(std::lround(ratio_ * 100));
    text += " (a server gave " + std::to_string(hundredths) + " % of the throughput without)";
  }
  return text;
}

}  // namespace muster::locks
