// SPDX-License-Identifier: BSD-3-Clause
// What a lock tells of itself: to programs, and to people.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

TEST(LockAbi, TellsItsChoice) {
  std::optional<muster::server> server(std::in_place);
  muster::lock sends("rcl", &*server);
  EXPECT_STREQ("rcl", sends.choice().kind);
  EXPECT_STREQ("none yet", sends.choice().way);
  sends.execute([] {});
  muster_lock_choice choice = sends.choice();
  EXPECT_EQ(0U, std::string(choice.way).find("sent to the server")) << choice.way;
  EXPECT_NE(0, choice.has_server);
  EXPECT_EQ(0U, std::string(choice.server_why).find("the program has started it"));
  const bool is_named = server->explain().find("NUMA node") != std::string::npos;
  EXPECT_EQ(is_named, choice.server_numa_node != MUSTER_NO_NUMA_NODE) << server->explain();
  server.reset();
  choice = sends.choice();
  EXPECT_EQ(0, choice.has_server);
  EXPECT_EQ(MUSTER_NO_NUMA_NODE, choice.server_numa_node);
  EXPECT_NE(std::string::npos, std::string(choice.server_why).find("stopped")) << choice.server_why;
  EXPECT_NE(std::string::npos, std::string(choice.way).find("no server now")) << choice.way;

  const muster::lock direct("mcs");
  EXPECT_STREQ("mcs", direct.choice().kind);
  EXPECT_EQ(0, direct.choice().has_server);
  EXPECT_STREQ("only auto and rcl have servers", direct.choice().server_why);
  const muster::lock combines("cc-synch");
  EXPECT_STRNE(direct.choice().way, combines.choice().way);
  const muster::lock by_default;
  EXPECT_STREQ("auto", by_default.choice().kind);

  struct {
    muster_lock_choice today;
    std::uint64_t later;
  } newer{{}, 7};
  muster_lock* const handle = sends.native_handle();
  ASSERT_EQ(MUSTER_OK, muster_lock_get_choice(handle, &newer.today, sizeof newer));
  EXPECT_STREQ("rcl", newer.today.kind);
  EXPECT_EQ(0U, newer.later);
  muster_lock_choice older{};
  older.way = "untouched";
  ASSERT_EQ(MUSTER_OK, muster_lock_get_choice(handle, &older, sizeof older.kind));
  EXPECT_STREQ("rcl", older.kind);
  EXPECT_STREQ("untouched", older.way);
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_get_choice(handle, nullptr, 0));
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_get_choice(nullptr, &older, sizeof older));
}

TEST(LockAbi, TellsAServersPlace) {
  muster::server server;
  const muster_place place = server.place();
  const std::string said = server.explain();
  const auto is_said = [&](const std::string& what) { return said.find(what) != said.npos; };
  const bool is_here = is_said("on CPU ");
  EXPECT_TRUE(is_said(is_here ? "on CPU " + std::to_string(place.pu)
                              : "counted on core " + std::to_string(place.core)))
      << said;
  EXPECT_EQ(place.numa_node >= 0, is_said("NUMA node " + std::to_string(place.numa_node))) << said;
  muster_place same{};
  EXPECT_EQ(MUSTER_EINVAL, muster_server_get_place(nullptr, &same));
  EXPECT_EQ(MUSTER_EINVAL, muster_server_get_place(server.native_handle(), nullptr));
}

TEST(LockAbi, DeclinesToSayWhereAServerIsOffTheTopology) {
  if (!children_make_threads) GTEST_SKIP() << "no threads' child makes threads here";
  cpu_set_t mine;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof mine, &mine));
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &mine)) --last;
  if (last == 0) GTEST_SKIP() << "there is CPU 0 alone";
  Child child([last] {  // reads its environment anew
    setenv("MUSTER_TOPOLOGY", "core:1 pu:1", 1);
    muster::server server(std::to_string(last));
    muster_place place{};
    if (muster_server_get_place(server.native_handle(), &place) != MUSTER_EDECLINED) _exit(3);
  });
  EXPECT_EQ("", child.wait());
}

TEST(LockAbi, ExplainsItself) {
  muster::lock lock;
  lock.execute([] {});
  EXPECT_NE(std::string::npos, lock.explain().find("lock: auto"));
  muster_lock_counters counters;
  ASSERT_EQ(MUSTER_OK, muster_lock_get_counters(lock.native_handle(), &counters, sizeof counters));
  EXPECT_EQ(1U, counters.by_client);
  char text[8];
  std::size_t needed = 0;
  EXPECT_EQ(MUSTER_OK,
            muster_lock_explain(lock.native_handle(), nullptr, text, sizeof text, &needed));
  EXPECT_EQ(7U, std::string(text).size());
  EXPECT_GT(needed, sizeof text);
  char json[2048];
  EXPECT_EQ(MUSTER_OK,
            muster_lock_explain(lock.native_handle(), "json", json, sizeof json, &needed));
  EXPECT_EQ(needed, std::string(json).size() + 1);
  EXPECT_EQ(0U, std::string(json).find(R"({"lock":"auto","cost":")")) << json;
  EXPECT_NE(std::string::npos, std::string(json).find(R"("executed_by_the_client":1,)")) << json;
  EXPECT_EQ(MUSTER_EUNKNOWN, muster_lock_explain(lock.native_handle(), "xml", nullptr, 0, nullptr));
}

}  // namespace
}  // namespace muster::test
