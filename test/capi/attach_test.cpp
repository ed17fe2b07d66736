// SPDX-License-Identifier: BSD-3-Clause
// Attaching from another process: by descriptor, by name, in a segment; and to what is no barrier.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "every.hpp"

namespace muster::test {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

std::string unique_name(const char* what) {
  return "test." + std::to_string(getpid()) + "." + what;
}

/// In a child: fails loudly.
void must(int status) {
  if (status != MUSTER_OK) throw std::runtime_error(muster_last_error());
}

void meet(muster_barrier* barrier, unsigned rank, unsigned times) {
  for (unsigned i = 0; i < times; ++i) must(muster_barrier_timedwait(barrier, rank, patience_ns));
}

TEST(HangGuard, TellsWhereAChildIs) {
  const HangGuard guard(60);
  testing::internal::CaptureStderr();
  Child child([] {
    itimerval own{};
    getitimer(ITIMER_REAL, &own);
    if (own.it_value.tv_sec == 0) _exit(5);  // would hang until its parent's end
    std::raise(SIGALRM);
  });
  EXPECT_EQ(child.wait(), "ended with status 3");
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("HANG after 60 s in HangGuard.TellsWhereAChildIs"));
  EXPECT_THAT(told, HasSubstr("test-capi-attach(")) << "the stack";
}

TEST(AttachByFd, GivesTheSameBarrier) {
  const HangGuard guard(60);
  for (const char* const* name = muster_barrier_names(); *name != nullptr; ++name) {
    muster_options options = shared_options(4, *name);
    options.topology = "package:2 numa:2 core:2 pu:1";
    options.map_by = "numa";
    options.first_episode = 0xfffffffa;
    const CapiSubject barrier(options);
    EXPECT_EQ(
        run_processes(4,
                      [&](unsigned rank) {
                        muster_barrier* mine = nullptr;
                        must(muster_barrier_attach(&mine, muster_barrier_fd(barrier.handle())));
                        // `following` tells what others have said meanwhile.
                        if (*name != std::string("following") &&
                            explain(mine) != explain(barrier.handle())) {
                          throw std::runtime_error("it explains itself differently");
                        }
                        meet(mine, rank, rounds(300));
                        muster_barrier_destroy(mine);
                      }),
        "")
        << *name;
  }
}

// A completion that only some of the processes had would be left out whenever another one's rank is
// the champion.
TEST(AttachByFd, NeedsTheCompletionThatTheCreatorHas) {
  const HangGuard guard(60);
  muster_options options = shared_options(2, "sense-reversing");
  auto* const calls = static_cast<std::atomic<unsigned>*>(
      mmap(nullptr, sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(calls, MAP_FAILED);
  const auto count = [](void* context) {
    static_cast<std::atomic<unsigned>*>(context)->fetch_add(1);
    return 0;
  };
  options.completion = count;
  options.context = calls;
  const CapiSubject barrier(options);
  Child child([&] {
    muster_barrier* mine = nullptr;
    must(muster_barrier_attach(&mine, muster_barrier_fd(barrier.handle())));
    if (muster_barrier_wait(mine, 1) != MUSTER_ENOTSUP) throw std::runtime_error("waits without");
    if (muster_barrier_set_hooks(mine, nullptr, nullptr, nullptr) != MUSTER_EINVAL) {
      throw std::runtime_error("takes none");
    }
    must(muster_barrier_set_hooks(mine, nullptr, count, calls));
    meet(mine, 1, 100);
    muster_barrier_destroy(mine);
  });
  meet(barrier.handle(), 0, 100);
  EXPECT_EQ(child.wait(), "");
  EXPECT_EQ(calls->load(), 100U);
  munmap(calls, sizeof(unsigned));

  const CapiSubject plain(shared_options(2));
  EXPECT_EQ(muster_barrier_set_hooks(plain.handle(), nullptr, count, calls), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_set_hooks(nullptr, nullptr, nullptr, nullptr), MUSTER_EINVAL);
}

TEST(AttachByName, WaitsForTheNameToAppear) {
  const HangGuard guard(60);
  const std::string name = unique_name("later");
  Child child([&] {
    muster_barrier* mine = nullptr;
    must(muster_barrier_attach_name(&mine, name.c_str(), INT64_MAX));
    meet(mine, 1, 100);
    muster_barrier_destroy(mine);
  });
  usleep(30'000);
  const CapiSubject barrier(shared_options(2));
  ASSERT_EQ(muster_barrier_publish(barrier.handle(), name.c_str()), MUSTER_OK)
      << muster_last_error();
  meet(barrier.handle(), 0, 100);
  EXPECT_EQ(child.wait(), "");
}

TEST(AttachByName, TimesOut) {
  const HangGuard guard(60);
  muster_barrier* barrier = nullptr;
  const auto start = steady_clock::now();
  EXPECT_EQ(muster_barrier_attach_name(&barrier, unique_name("none").c_str(), 20'000'000),
            MUSTER_ETIMEDOUT);
  EXPECT_GE(steady_clock::now() - start, std::chrono::milliseconds(20));
  EXPECT_EQ(muster_barrier_attach_name(&barrier, unique_name("none").c_str(), 0), MUSTER_ETIMEDOUT);
  EXPECT_EQ(muster_barrier_attach_name(&barrier, unique_name("none").c_str(), -1), MUSTER_EINVAL);
  EXPECT_EQ(barrier, nullptr);
}

TEST(Publish, TakesANameOnceAndOnlyAProperOne) {
  const HangGuard guard(60);
  const CapiSubject first(shared_options(2));
  const CapiSubject second(shared_options(2));
  const std::string name = unique_name("once");
  EXPECT_EQ(muster_barrier_publish(first.handle(), name.c_str()), MUSTER_OK);
  EXPECT_EQ(muster_barrier_publish(second.handle(), name.c_str()), MUSTER_EBUSY);
  EXPECT_THAT(muster_last_error(), HasSubstr("choose another"));
  muster_barrier* again = nullptr;
  EXPECT_EQ(muster_barrier_attach_name(&again, name.c_str(), patience_ns), MUSTER_OK);
  muster_barrier_destroy(again);
  for (const std::string& wrong :
       {std::string(), std::string("a/b"), std::string("a b"), std::string(65, 'a')}) {
    EXPECT_EQ(muster_barrier_publish(second.handle(), wrong.c_str()), MUSTER_EINVAL) << wrong;
  }
  EXPECT_EQ(muster_barrier_publish(second.handle(), nullptr), MUSTER_EINVAL);
  const CapiSubject unshared(options_for(2));
  EXPECT_EQ(muster_barrier_publish(unshared.handle(), name.c_str()), MUSTER_ENOTSUP);
  EXPECT_THAT(muster_last_error(), HasSubstr("MUSTER_SHARED"));
}

TEST(Publish, EndsWithTheBarrier) {
  const HangGuard guard(60);
  const std::string name = unique_name("ends");
  for (int i = 0; i < 20; ++i) {
    const CapiSubject barrier(shared_options(2));
    ASSERT_EQ(muster_barrier_publish(barrier.handle(), name.c_str()), MUSTER_OK) << i;
    muster_barrier* again = nullptr;
    EXPECT_EQ(muster_barrier_attach_name(&again, name.c_str(), 1'000'000'000), MUSTER_OK);
    muster_barrier_destroy(again);
  }
  muster_barrier* barrier = nullptr;
  EXPECT_EQ(muster_barrier_attach_name(&barrier, name.c_str(), 0), MUSTER_ETIMEDOUT);
}

TEST(AttachInASegment, ByNameAndHandle) {
  const HangGuard guard(60);
  const std::string name = unique_name("segment");
  muster_segment* segment = nullptr;
  ASSERT_EQ(muster_segment_create(&segment, 1 << 20), MUSTER_OK);
  ASSERT_EQ(muster_segment_publish(segment, name.c_str()), MUSTER_OK) << muster_last_error();
  muster_options options = shared_options(2);
  options.segment = segment;
  std::vector<muster_barrier*> barriers(20);
  std::vector<std::uint64_t> handles;
  for (muster_barrier*& barrier : barriers) {
    ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK);
    handles.push_back(muster_barrier_handle(barrier));
  }
  // Whoever serves the name has begun, and rests: what it held at a fork, a sanitizer's heap too,
  // the child would wait for.
  muster_segment* again = nullptr;
  ASSERT_EQ(muster_segment_attach_name(&again, name.c_str(), patience_ns), MUSTER_OK);
  muster_segment_destroy(again);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Child child([&] {
    muster_segment* mine = nullptr;
    must(muster_segment_attach_name(&mine, name.c_str(), patience_ns));
    std::vector<muster_barrier*> attached(handles.size());
    for (std::size_t i = 0; i < handles.size(); ++i) {
      must(muster_barrier_attach_at(&attached[i], mine, handles[i]));
    }
    for (int round = 0; round < 10; ++round) {
      for (muster_barrier* barrier : attached) meet(barrier, 1, 1);
    }
    for (muster_barrier* barrier : attached) muster_barrier_destroy(barrier);
    muster_segment_destroy(mine);
  });
  for (int round = 0; round < 10; ++round) {
    for (muster_barrier* barrier : barriers) meet(barrier, 0, 1);
  }
  EXPECT_EQ(child.wait(), "");
  muster_barrier* none = nullptr;
  for (std::uint64_t wrong = 0; wrong < (1U << 20) + 200; wrong += 32) {
    if (std::find(handles.begin(), handles.end(), wrong) != handles.end()) continue;
    const int status = muster_barrier_attach_at(&none, segment, wrong);
    ASSERT_THAT(status, testing::AnyOf(MUSTER_EINVAL, MUSTER_EFOREIGN)) << wrong;
  }
  EXPECT_EQ(muster_barrier_attach_at(&none, segment, ~std::uint64_t{0}), MUSTER_EINVAL);
  for (muster_barrier* barrier : barriers) muster_barrier_destroy(barrier);
  EXPECT_EQ(muster_barrier_attach_at(&none, segment, handles[0]), MUSTER_EFOREIGN) << "destroyed";
  muster_segment_destroy(segment);
}

TEST(AttachToSomethingElse, TellsWhatItIsNot) {
  muster_barrier* barrier = nullptr;
  muster_segment* segment = nullptr;
  const int wrong[] = {memfd_create("other", 0), open("/dev/null", O_RDWR | O_CLOEXEC),
                       open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                       socket(AF_UNIX, SOCK_STREAM, 0)};
  ASSERT_EQ(ftruncate(wrong[0], 1 << 20), 0);
  for (const int fd : wrong) {
    ASSERT_GE(fd, 0);
    EXPECT_EQ(muster_barrier_attach(&barrier, fd), MUSTER_EFOREIGN) << muster_last_error();
    EXPECT_EQ(muster_segment_attach(&segment, fd), MUSTER_EFOREIGN) << muster_last_error();
    close(fd);
  }
  EXPECT_EQ(muster_barrier_attach(&barrier, -1), MUSTER_EINVAL);
  EXPECT_EQ(muster_barrier_attach(&barrier, 1000), MUSTER_EINVAL);
  // A segment in which no barrier begins.
  ASSERT_EQ(muster_segment_create(&segment, 4096), MUSTER_OK);
  EXPECT_EQ(muster_barrier_attach(&barrier, muster_segment_fd(segment)), MUSTER_EFOREIGN);
  muster_segment_destroy(segment);
  EXPECT_EQ(barrier, nullptr);
}

/// A barrier's memory that ends where the buffer does, so that AddressSanitizer sees what is
/// beyond.
class Image {
 public:
  explicit Image(const muster_options& from) : options_(from) {
    std::size_t alignment = 0;
    if (muster_barrier_memory(&options_, &bytes_, &alignment) != MUSTER_OK) std::abort();
    memory_ = static_cast<unsigned char*>(std::aligned_alloc(alignment, bytes_));
    std::memset(memory_, 0, bytes_);
    options_.memory = memory_;
    options_.memory_bytes = bytes_;
    if (muster_barrier_create(&barrier_, &options_) != MUSTER_OK) std::abort();
    pristine_.assign(memory_, memory_ + bytes_);
  }
  ~Image() {
    restore();
    muster_barrier_destroy(barrier_);
    std::free(memory_);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  unsigned char* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }
  void restore() { std::memcpy(memory_, pristine_.data(), bytes_); }

  /// The hash that its header has of its description: fields 3 and 4 of 64 bits.
  std::uint64_t description_bytes() const { return field(3); }
  void hash_again() {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (std::uint64_t i = 0; i < description_bytes(); ++i) {
      hash = (hash ^ memory_[64 + i]) * 0x100000001b3;
    }
    std::memcpy(memory_ + 4 * sizeof hash, &hash, sizeof hash);
  }

 private:
  std::uint64_t field(std::size_t index) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory_ + index * sizeof value, sizeof value);
    return value;
  }

  muster_options options_;
  muster_barrier* barrier_ = nullptr;
  unsigned char* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<unsigned char> pristine_;
};

/// Attaches and, if that succeeds, uses it a little. What the attach said.
int attach_and_use(const Image& image, std::size_t bytes) {
  muster_barrier* barrier = nullptr;
  const int status = muster_barrier_attach_memory(&barrier, image.memory(), bytes);
  if (status != MUSTER_OK) {
    EXPECT_EQ(barrier, nullptr);
    return status;
  }
  EXPECT_FALSE(explain(barrier, "text").empty());
  EXPECT_FALSE(explain(barrier, "json").empty());
  const unsigned ranks = muster_barrier_participants(barrier);
  static_cast<void>(muster_barrier_timedwait(barrier, ranks / 2, 0));
  static_cast<void>(muster_barrier_timedwait(barrier, ranks - 1, 0));
  muster_barrier_destroy(barrier);
  return status;
}

muster_options on_one_numa_node() {
  muster_options options = shared_options(6, "topo");
  options.topology = "package:2 l3:2 core:2 pu:1";
  options.map_by = "core";
  return options;
}

TEST(Fuzz, EveryByteOfHeaderAndDescription) {
  const HangGuard guard(100);
  Image image(on_one_numa_node());
  ASSERT_EQ(attach_and_use(image, image.bytes()), MUSTER_OK) << muster_last_error();
  image.restore();
  const std::size_t end = 64 + image.description_bytes();
  ASSERT_LT(end, image.bytes());
  for (std::size_t at = 0; at < end; ++at) {
    for (const unsigned flip : {0x01U, 0x80U, 0xffU, 0x10U}) {
      image.restore();
      image.memory()[at] = static_cast<unsigned char>(image.memory()[at] ^ flip);
      const bool means_nothing = at >= 56 && at < 64;  // between header and description
      EXPECT_EQ(attach_and_use(image, image.bytes()), means_nothing ? MUSTER_OK : MUSTER_EFOREIGN)
          << "byte " << at;
    }
  }
}

// Who attaches composes the schedule anew. Another version might compose another one, and the two
// would await flags that nobody stores.
TEST(AttachToSomethingElse, RefusesAnotherVersionsSchedule) {
  const HangGuard guard(100);
  muster_options options = on_one_numa_node();
  options.algorithm = "scheduled:tree2+line";
  Image image(options);
  ASSERT_EQ(attach_and_use(image, image.bytes()), MUSTER_OK) << muster_last_error();
  image.restore();
  image.memory()[64 + image.description_bytes() - 8] ^= 1;  // the schedule's hash comes last
  image.hash_again();
  EXPECT_EQ(attach_and_use(image, image.bytes()), MUSTER_EFOREIGN);
  EXPECT_THAT(muster_last_error(), HasSubstr("composes another schedule for scheduled:tree2+line"));
}

TEST(Fuzz, EveryLength) {
  const HangGuard guard(100);
  Image image(on_one_numa_node());
  for (std::size_t bytes = 0; bytes < image.bytes(); bytes += bytes < 700 ? 1 : 64) {
    ASSERT_EQ(attach_and_use(image, bytes), MUSTER_EFOREIGN) << bytes;
  }
}

}  // namespace
}  // namespace muster::test
