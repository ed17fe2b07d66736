// SPDX-License-Identifier: BSD-3-Clause
#include "trial.hpp"

#include <sched.h>

#include <algorithm>

#include "guard.hpp"

namespace muster::test {
namespace {

std::uint64_t result_of(unsigned client, std::uint64_t number) {
  return number * 1'000'003 + client;
}

}  // namespace

void Numbered::execute(void* argument) {
  auto& self = *static_cast<Numbered*>(argument);
  Protected& data = *self.data;
  const std::uint64_t before = data.count;
  if (before != data.mirror) data.wrong = "two were inside at once";
  data.count = before + 1;
  for (unsigned turn = 0; turn < self.others; ++turn) asm volatile("" ::: "memory");
  if (data.count != before + 1) data.wrong = "somebody came in";
  if (data.executed[self.client] + 1 != self.number) {
    data.wrong = "a client's section came twice, never or out of its order";
  }
  data.executed[self.client] = self.number;
  self.result = result_of(self.client, self.number);
  data.mirror = data.count;
}

std::string run_lock_trial(const Execute& execute, const LockTrial& trial, const Execute& post) {
  Protected data(trial.clients);
  FirstFailure failure{};
  run_threads(trial.clients, [&](unsigned client) {
    Random random(trial.seed + client);
    std::vector<Numbered> sections(trial.posts + 1);
    for (std::uint64_t done = 0; done < trial.sections && !failure.happened();) {
      sections.resize(std::min<std::uint64_t>(sections.size(), trial.sections - done));
      std::uint64_t number = done;
      for (Numbered& section : sections) {
        section = {&data, client, ++number, 0, random.one_in(16) ? random.below(200) : 0};
        (&section == &sections.back() ? execute : post)({Numbered::execute, &section});
      }
      for (const Numbered& section : sections) {
        if (section.result == result_of(client, ++done)) continue;
        failure.report("client " + std::to_string(client) + " has no result, or another's");
      }
      if (trial.yields && random.one_in(32)) sched_yield();
    }
  });
  if (failure.happened()) return failure.text();
  if (*data.wrong != '\0') return data.wrong;
  const std::uint64_t wanted = trial.clients * trial.sections;
  if (data.count != wanted) {
    return std::to_string(data.count) + " sections executed of " + std::to_string(wanted);
  }
  return "";
}

std::string run_lock_trial(delegation::AnyLock& lock, const LockTrial& trial) {
  return run_lock_trial([&](delegation::Section section) { execute_section(lock, section); }, trial,
                        [&](delegation::Section section) { lock.post(section); });
}

}  // namespace muster::test
