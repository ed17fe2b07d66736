// SPDX-License-Identifier: BSD-3-Clause
#include "trial.hpp"

#include <sched.h>
#include <unistd.h>

#include <chrono>

namespace muster::test {
namespace {

void dawdle(Random& random) {
  switch (random.below(64)) {
    case 0:
    case 1:
      sched_yield();
      break;
    case 2: {
      for (std::uint64_t left = random.below(3000); left > 0; --left) asm volatile("");
      break;
    }
    case 3:
      if (random.one_in(24)) usleep(random.below(400));
      break;
    default:
      break;
  }
}

std::chrono::milliseconds budget(const Trial& trial) {
  return std::chrono::milliseconds(trial.budget_ms * soak_factor());
}

std::uint64_t total_episodes = 0;

struct Progress {
  bool stop[2];
  unsigned episodes;
};

class Run {
 public:
  Run(const std::vector<Subject*>& barriers, const Trial& trial)
      : barriers_(barriers),
        trial_(trial),
        participants_(barriers.front()->participants()),
        memory_(2 * std::size_t{participants_} * sizeof(std::uint32_t)),
        end_(std::chrono::steady_clock::now() + budget(trial)) {
    Random random(trial.seed);
    const std::vector<unsigned> cpus = allowed_cpus();
    for (const unsigned place : shuffled(participants_, random)) {
      cpu_of_rank_.push_back(cpus[place % cpus.size()]);
    }
  }

  std::string operator()() {
    const auto body = [this](unsigned rank) { take_part(rank); };
    std::string failure;
    if (trial_.processes) {
      failure = run_processes(participants_, body);
    } else {
      run_threads(participants_, body);
    }
    total_episodes += progress_->episodes;
    return failure_->happened() ? failure_->text() : failure;
  }

 private:
  std::uint32_t& datum(unsigned episode, unsigned rank) {
    // Two sets: one of this episode's readers may be slow, but not by more than an episode.
    auto* const data = reinterpret_cast<std::uint32_t*>(memory_.data());
    return data[std::size_t{episode % 2} * participants_ + rank];
  }

  std::uint32_t value(unsigned episode, unsigned rank) const {
    return static_cast<std::uint32_t>(trial_.seed) + episode * 0x9e3779b1U + rank;
  }

  void take_part(unsigned rank) {
    if (trial_.bind) bind_to_cpu(cpu_of_rank_[rank]);
    Random random(trial_.seed + 1 + rank);
    usleep(random.below(300));  // or they would come in the order in which they were made
    for (unsigned episode = 0; episode < trial_.episodes; ++episode) {
      dawdle(random);
      if (rank == 0) {  // plain too: it decides for all when to stop, and the barrier tells them
        progress_->stop[episode % 2] =
            episode + 1 >= episodes_min && std::chrono::steady_clock::now() > end_;
      }
      datum(episode, rank) = value(episode, rank);
      Subject& barrier = *barriers_[episode % barriers_.size()];
      if (const std::string why = barrier.wait(rank, random); !why.empty()) {
        return report(barrier, rank, episode, why);
      }
      for (unsigned other = 0; other < participants_; ++other) {
        const std::uint32_t seen = datum(episode, other);
        if (seen == value(episode, other)) continue;
        report(barrier, rank, episode,
               "left although rank " + std::to_string(other) + " had not arrived (its datum is " +
                   std::to_string(static_cast<std::int32_t>(seen - value(episode, other))) +
                   " off)");
        break;
      }
      if (rank == 0) progress_->episodes = episode + 1;
      if (progress_->stop[episode % 2]) return;
    }
  }

  void report(const Subject& barrier, unsigned rank, unsigned episode, const std::string& what) {
    failure_->report("rank " + std::to_string(rank) + ", episode " + std::to_string(episode) +
                     ": " + what + "; " + barrier.describe());
  }

  const std::vector<Subject*>& barriers_;
  const Trial& trial_;
  unsigned participants_;
  SharedMemory memory_;
  std::vector<unsigned> cpu_of_rank_;
  std::chrono::steady_clock::time_point end_;
  Shared<Progress> progress_;
  Shared<FirstFailure> failure_;
};

}  // namespace

std::string run_trial(const std::vector<Subject*>& barriers, const Trial& trial) {
  return Run(barriers, trial)();
}

std::uint64_t episodes_run() { return total_episodes; }

}  // namespace muster::test
