// SPDX-License-Identifier: BSD-3-Clause
#include "harness.hpp"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

namespace muster::test {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : otherwise;
}

std::uint64_t run_seed() {
  static const std::uint64_t seed = [] {
    const std::uint64_t random = std::random_device{}();
    return number_from("MUSTER_SEED", random);
  }();
  return seed;
}

std::string case_name() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  if (info == nullptr) return "";
  return std::string(info->test_suite_name()) + "." + info->name();
}

std::string executable() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "this test";
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) {
    return std::string("was ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
           sigabbrev_np(WTERMSIG(status)) + ")";
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : "ended with status " + std::to_string(code);
}

char hang_text[1024];

/// What the signal has interrupted; of other threads only a debugger tells.
void write_stack() {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, std::size(frames)), STDERR_FILENO);
}

void on_alarm(int) {
  const ssize_t written = write(STDERR_FILENO, hang_text, strlen(hang_text));
  static_cast<void>(written);
  std::signal(SIGALRM, SIG_DFL);  // what follows may hang, too
  alarm(10);
  write_stack();
  _exit(3);
}

int fork_child(const std::function<void()>& body) {
  std::fflush(nullptr);
  const int parent = getpid();
  itimerval left{};  // of the guard's time, which a child does not inherit
  getitimer(ITIMER_REAL, &left);
  const int pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const long seconds = left.it_value.tv_sec;
  if (seconds > 1) alarm(static_cast<unsigned>(seconds - 1));  // before its parent's end ends it
  if (getppid() != parent) _exit(0);
  int status = 0;
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exception in a process: %s\n", error.what());
    status = 4;
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

unsigned soak_factor() { return static_cast<unsigned>(number_from("MUSTER_SOAK", 1)); }

unsigned rounds(unsigned full) {
  const unsigned n = reduced ? (full + 7) / 8 : full;
  return n * soak_factor();
}

std::uint64_t case_seed() {
  std::uint64_t seed = run_seed();
  for (const char c : case_name()) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return seed;
}

std::string replay_command() {
  return "MUSTER_SEED=" + std::to_string(run_seed()) + " " + executable() +
         " --gtest_filter=" + case_name();
}

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<unsigned> shuffled(unsigned n, Random& random) {
  std::vector<unsigned> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0U);
  for (unsigned i = n; i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
  return numbers;
}

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(at);
}

SharedMemory::~SharedMemory() { munmap(data_, bytes_); }

void FirstFailure::report(const std::string& text) {
  if (claimed_.exchange(1, std::memory_order_relaxed) != 0) return;
  const std::size_t length = std::min(text.size(), sizeof text_ - 1);
  std::memcpy(text_, text.data(), length);
  text_[length] = '\0';
}

HangGuard::HangGuard(unsigned seconds, const std::string& what) {
  const std::string text = "\nHANG after " + std::to_string(seconds) + " s in " + case_name() +
                           " " + what + "\n  replay: " + replay_command() + "\n";
  const std::size_t length = std::min(text.size(), sizeof hang_text - 1);
  std::memcpy(hang_text, text.data(), length);
  hang_text[length] = '\0';
  void* frame = nullptr;
  backtrace(&frame, 1);  // the first one allocates
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART | SA_NODEFER;
  sigaction(SIGALRM, &action, nullptr);
  alarm(seconds * 10 * (reduced ? 4 : 1) * soak_factor());  // a busy machine is no hang
}

HangGuard::~HangGuard() { alarm(0); }

bool in_a_quiet_moment(const std::function<bool()>& attempt) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  do {
    if (attempt()) return true;
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

std::vector<unsigned> allowed_cpus() {
  std::vector<unsigned> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void bind_to_cpu(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

namespace {

std::int64_t cpu_ns(int whose) {
  rusage used{};
  getrusage(whose, &used);
  const auto ns = [](const timeval& t) {
    return std::int64_t{t.tv_sec} * 1'000'000'000 + std::int64_t{t.tv_usec} * 1'000;
  };
  return ns(used.ru_utime) + ns(used.ru_stime);
}

}  // namespace

std::int64_t thread_cpu_ns() { return cpu_ns(RUSAGE_THREAD); }
std::int64_t process_cpu_ns() { return cpu_ns(RUSAGE_SELF); }

void run_threads(unsigned n, const std::function<void(unsigned)>& body) {
  std::vector<std::thread> team;
  for (unsigned rank = 0; rank < n; ++rank) team.emplace_back(body, rank);
  for (std::thread& thread : team) thread.join();
}

std::string run_processes(unsigned n, const std::function<void(unsigned)>& body) {
  std::vector<std::unique_ptr<Child>> team;
  for (unsigned rank = 0; rank < n; ++rank) {
    team.push_back(std::make_unique<Child>([&body, rank] { body(rank); }));
  }
  std::string failure;
  for (unsigned rank = 0; rank < n; ++rank) {
    const std::string end = team[rank]->wait();
    if (failure.empty() && !end.empty()) {
      failure = "the process of rank " + std::to_string(rank) + " " + end;
    }
  }
  return failure;
}

Child::Child(const std::function<void()>& body) : pid_(fork_child(body)) {
  if (pid_ < 0) throw std::runtime_error("fork failed");
}

Child::~Child() {
  if (waited_) return;
  kill();
  wait();
}

void Child::kill() { ::kill(pid_, SIGKILL); }

std::string Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return "cannot be waited for";
  }
  waited_ = true;
  return describe_end(status);
}

bool Child::ended() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

}  // namespace muster::test
