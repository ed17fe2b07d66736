// SPDX-License-Identifier: BSD-3-Clause
// What happens seldom in OpenMP programs, a case each; "passed" is its last word. The same source
// as a library, built by another compiler, brings another runtime.
#include <dlfcn.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "expect.h"

namespace {

/// In a team: all have written before anybody reads.
void episodes_of(std::vector<int>& data, int episodes) {
  const int me = omp_get_thread_num();
  for (int episode = 1; episode <= episodes; ++episode) {
    data[me] = episode;
#pragma omp barrier
    for (int i = 0; i < omp_get_num_threads(); ++i) EXPECT(data[i] == episode);
#pragma omp barrier
  }
}

}  // namespace

/// What the other compiler's library has, too. `inside`, if not null, is called in the region.
extern "C" void team_of(int size, int episodes, void (*inside)(int)) {
  std::vector<int> data(size);
#pragma omp parallel num_threads(size)
  {
    episodes_of(data, episodes);
    if (inside != nullptr) inside(episodes);
    episodes_of(data, episodes);
  }
}

namespace {

void small_team(int episodes) { team_of(2, episodes, nullptr); }

/// What is thrown in a region is caught there, beside barriers of others.
void exceptions() {
  int caught = 0;
  std::vector<int> data(4);
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 50; ++round) {
    episodes_of(data, 2);
    try {
      if (omp_get_thread_num() == round % 4) throw std::runtime_error("thrown");
    } catch (const std::runtime_error&) {
#pragma omp atomic
      ++caught;
    }
    try {
      team_of(2, 1, [](int) {
        try {
          throw 1;
        } catch (int) {
        }
      });
      if (round % 2 == 0) throw 2;
    } catch (int) {
    }
#pragma omp barrier
  }
  EXPECT(caught == 50);
}

/// Sums in loops, at ends, and by tasks; a value handed to all.
void reductions() {
  for (int size = 1; size <= 5; ++size) {
    long loop = 0, end = 0, of_tasks = 0;
    long section[3] = {};
#pragma omp parallel num_threads(size) reduction(+ : end)
    for (int round = 1; round <= 100; ++round) {
#pragma omp for reduction(+ : loop, section)
      for (int i = 0; i < 20; ++i) {
        loop += i;
        section[i % 3] += 1;
      }
      EXPECT(loop == 190L * round && section[1] == 7L * round);
      long mine = -1;
#pragma omp single copyprivate(mine)
      mine = loop;
      EXPECT(mine == loop);
#pragma omp barrier
      end += 1;
    }
    EXPECT(end == 100L * size);
#pragma omp parallel num_threads(size) reduction(task, + : of_tasks)
    {
#pragma omp barrier
#pragma omp single
      for (int i = 0; i < 30; ++i) {
#pragma omp task in_reduction(+ : of_tasks)
        of_tasks += i;
      }
    }
    EXPECT(of_tasks == 435);
  }
}

/// Leagues on this machine, and regions of a target that is this machine; tasks that begin teams.
void leagues() {
  for (int round = 0; round < 20; ++round) {
#pragma omp teams num_teams(2) thread_limit(3)
    {
      std::vector<int> data(3);
#pragma omp parallel num_threads(3)
      episodes_of(data, 10);
    }
    int done = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp barrier
      if (omp_get_thread_num() == 0) {
#pragma omp target nowait map(tofrom : done)
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
#pragma omp atomic
          ++done;
        }
      }
#pragma omp barrier
      EXPECT(done >= 1);
#pragma omp single
      for (int i = 0; i < 4; ++i) {
#pragma omp task
        small_team(3);
      }
#pragma omp barrier
    }
  }
}

/// Sizes that change from region to region, and what was asked for is not what comes.
void sizes() {
  for (int round = 0; round < 100; ++round) {
    omp_set_num_threads(1 + round % 7);
    std::vector<int> data(omp_get_max_threads());
    int seen = 0;
#pragma omp parallel
    {
      episodes_of(data, 3);
#pragma omp single
      seen = omp_get_num_threads();
    }
    EXPECT(seen == 1 + round % 7);
  }
  omp_set_dynamic(1);
  for (int round = 0; round < 20; ++round) team_of(64, 3, nullptr);
  omp_set_dynamic(0);
}

/// A child begun between two regions; LLVM's runtime lives on there.
void forks() {
  team_of(3, 20, nullptr);
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
#ifdef __clang__
      team_of(3, 20, nullptr);
#endif
      exit(7);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    team_of(3, 20, nullptr);
  }
}

/// One thread comes when the others have: 200 times each.
void late() {
  for (int round = 0; round < 2; ++round) {
    std::atomic<int> here{0};
#pragma omp parallel num_threads(3)
    for (int episode = 0; episode < 100; ++episode) {
      if (omp_get_thread_num() == 1) {
        while (here < 2 * (episode + 1)) usleep(50);
        usleep(200);
      } else {
        ++here;
      }
#pragma omp barrier
    }
  }
}

/// One thread ends the process while the others are at a barrier.
void ends() {
#pragma omp parallel num_threads(4)
  for (int round = 0;; ++round) {
    if (round == 100 && omp_get_thread_num() == 2) {
      puts("passed");
      exit(3);
    }
#pragma omp barrier
  }
}

#ifndef __clang__
extern "C" void GOMP_parallel_start(void (*body)(void*), void* data, unsigned threads);
extern "C" void GOMP_parallel_end();

/// As GCC had it before 4.9: nobody sees the region begin.
void old() {
  static std::vector<int> data(4);
  const auto body = [](void*) { episodes_of(data, 20); };
  for (int round = 0; round < 20; ++round) {
    GOMP_parallel_start(body, nullptr, 4);
    body(nullptr);
    GOMP_parallel_end();
    team_of(3, 5, [](int) {
      static thread_local std::vector<int> one(1);
      GOMP_parallel_start([](void*) { episodes_of(one, 2); }, nullptr, 1);
      episodes_of(one, 2);
      GOMP_parallel_end();
    });
  }
}
#endif

// Three hundred variables, each shared by itself.
#define TEN(_, a) _(a##0) _(a##1) _(a##2) _(a##3) _(a##4) _(a##5) _(a##6) _(a##7) _(a##8) _(a##9)
#define HUNDRED(_, a) \
  TEN(_, a##0)        \
  TEN(_, a##1)        \
  TEN(_, a##2)        \
  TEN(_, a##3) TEN(_, a##4) TEN(_, a##5) TEN(_, a##6) TEN(_, a##7) TEN(_, a##8) TEN(_, a##9)
#define ALL(_) HUNDRED(_, x) HUNDRED(_, y) HUNDRED(_, z)

void many() {
#define DECLARE(name) int name = 1;
  ALL(DECLARE)
#undef DECLARE
  int sum = 0;
#pragma omp parallel num_threads(3)
  {
#pragma omp barrier
#pragma omp critical
    {
#define ADD(name) sum += name++;
      ALL(ADD)
#undef ADD
    }
#pragma omp barrier
    EXPECT(sum == 300 * (1 + 2 + 3));
  }
}

/// Teams of the other runtime's in ours, and ours in its.
void other(const char* path) {
  void* const library = dlopen(path, RTLD_NOW);
  EXPECT(library != nullptr);
  static void (*its_team)(int, int, void (*)(int)) = nullptr;
  its_team = reinterpret_cast<decltype(its_team)>(dlsym(library, "team_of"));
  EXPECT(its_team != nullptr && its_team != team_of);
  for (int round = 0; round < 20; ++round) {
    team_of(3, 20, nullptr);
    its_team(3, 20, nullptr);
    team_of(2, 5, [](int episodes) { its_team(2, episodes, nullptr); });
    its_team(2, 5, small_team);
  }
}

}  // namespace

extern "C" int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)();
  } all[] = {{"exceptions", exceptions},
             {"reductions", reductions},
             {"leagues", leagues},
             {"sizes", sizes},
             {"forks", forks},
             {"many", many},
             {"late", late},
#ifndef __clang__
             {"old", old},
#endif
             {"ends", ends}};
  for (const auto& one : all) {
    if (argc == 2 && strcmp(argv[1], one.name) == 0) one.run();
  }
  if (argc == 3) other(argv[2]);
  puts("passed");
  return 0;
}
