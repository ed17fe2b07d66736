// SPDX-License-Identifier: BSD-3-Clause
// What results say in words: computed, and also where ours lose.
#include "bench/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "bench/report.hpp"
#include "machine/error.hpp"

namespace muster::bench {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

Json barrier_row(const std::string& name, unsigned participants, const Json& means_ns) {
  const bool ours = name == "auto";
  const bool ok = !means_ns.empty();
  return {{"implementation", ours ? "muster" : name},
          {"algorithm", name},
          {"via", ours ? Json("c") : Json()},
          {"participants", participants},
          {"mode", "threads"},
          {"status", ok ? "ok" : "did not finish"},
          {"rank", ok && name != "limit" ? Json(1) : Json()},
          {"round_means_ns", means_ns}};
}

ResultSummary of_barriers(const Json& rows, const std::string& noise = "") {
  ResultSummary summary;
  add_results(summary,
              {{"benchmark", "barrier"},
               {"machine", {{"model", "a machine"}, {"cpus", 2}}},
               {"verdict", noise.empty() ? "quiet" : "noisy"},
               {"noise", {{"why", noise}}},
               {"results", rows}},
              "barrier.json");
  return summary;
}

TEST(Summary, RatiosAreWhatAPersonSays) {
  EXPECT_EQ(times_as_fast(369.6), "370 times as fast");
  EXPECT_EQ(times_as_fast(24918.8), "25000 times as fast");
  EXPECT_EQ(times_as_fast(14.4), "14 times as fast");
  EXPECT_EQ(times_as_fast(1.41), "1.4 times as fast");
  EXPECT_EQ(times_as_fast(1.04), "1.04 times as fast");
  EXPECT_EQ(times_as_fast(0.0027), "370 times as slow");
}

TEST(Summary, AWinIsSureAndBesideTheBestPeer) {
  const ResultSummary summary =
      of_barriers({barrier_row("auto", 8, {50, 51, 52}), barrier_row("x", 8, {100, 102, 104}),
                   barrier_row("y", 8, {300, 300, 300}), barrier_row("limit", 8, {10, 10, 10}),
                   barrier_row("z", 8, Json::array())});
  ASSERT_EQ(summary.findings.size(), 1U);
  const Finding& finding = summary.findings[0];
  EXPECT_EQ(finding.where, "8 threads on 2 CPUs");
  EXPECT_EQ(finding.other, "x");  // not the reference, nor who did not finish
  EXPECT_DOUBLE_EQ(finding.faster.ratio, 2);
  EXPECT_TRUE(finding.is_faster());
  const auto said = sentences(summary);
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[0],
            "Muster is surely the fastest in 1 of 1 settings with barriers of threads; no other is "
            "surely faster anywhere.");
  EXPECT_EQ(said[1],
            "Beside the best of the others, its barriers of threads are 2.0 times as fast.");
  EXPECT_THAT(said[2], HasSubstr("Next, put muster::barrier where std::barrier was"));
  EXPECT_THAT(findings_to_text(summary), HasSubstr("2.0 times as fast"));
}

TEST(Summary, NamesHaveRoom) {
  ResultSummary summary = of_barriers(
      {barrier_row("auto", 8, {50, 51, 52}), barrier_row("pthread_barrier", 8, {99, 99, 99})});
  ASSERT_EQ(summary.findings.size(), 1U);
  summary.findings[0].where = std::string(24, 'w');
  EXPECT_THAT(findings_to_text(summary), HasSubstr("  pthread_barrier "));
}

TEST(Summary, ALossIsSaid) {
  const ResultSummary summary =
      of_barriers({barrier_row("auto", 2, {60, 60, 60}), barrier_row("x", 2, {30, 30, 30})});
  const auto said = sentences(summary);
  EXPECT_THAT(said[0], HasSubstr("0 of 1"));
  EXPECT_THAT(said[0], HasSubstr("faster than Muster is x (2 threads)"));
  EXPECT_THAT(said[1], HasSubstr("barriers of threads are 2.0 times as slow"));
  EXPECT_THAT(said[2], HasSubstr("Keep what you have"));
  EXPECT_THAT(findings_to_text(summary), HasSubstr("2.0 times as slow"));
}

TEST(Summary, OursThatDidNotFinishHasLost) {
  const ResultSummary summary =
      of_barriers({barrier_row("auto", 2, Json::array()), barrier_row("x", 2, {30, 30, 30})});
  EXPECT_THAT(sentences(summary)[0], HasSubstr("faster than Muster is x"));
  EXPECT_THAT(findings_to_text(summary), HasSubstr("ours did not finish"));
}

TEST(Summary, OursThatHadNoTurnHasNotLost) {
  Json late = barrier_row("auto", 4, Json::array());
  late["seconds"] = 0.0;
  const ResultSummary summary =
      of_barriers({barrier_row("auto", 2, {50, 50, 50}), late, barrier_row("x", 4, {30, 30, 30})});
  EXPECT_EQ(sentences(summary)[0],
            "Muster is surely the fastest in 0 of 1 settings with barriers of threads; no other is "
            "surely faster anywhere.");
  EXPECT_THAT(findings_to_text(summary), HasSubstr("no time was left"));
}

TEST(Summary, NothingIsClaimedWhereRoundsDisagree) {
  const ResultSummary summary =
      of_barriers({barrier_row("auto", 2, {50, 50, 50}), barrier_row("x", 2, {60, 40, 55})});
  EXPECT_THAT(sentences(summary)[0], HasSubstr("0 of 1"));
  EXPECT_THAT(sentences(summary)[0], HasSubstr("no other is surely faster"));
  EXPECT_THAT(findings_to_text(summary), HasSubstr("about as fast"));
}

TEST(Summary, ANoisyRunWantsAnother) {
  const auto said = sentences(of_barriers(
      {barrier_row("auto", 2, {50, 50}), barrier_row("x", 2, {60, 60})}, "40 % stolen"));
  EXPECT_THAT(said[2], HasSubstr("measure again when the machine is quiet (40 % stolen)"));
}

TEST(Summary, LocksMpiAndPredictionsInEightyColumns) {
  ResultSummary summary;
  const Json machine{{"model", "a machine"}, {"cpus", 2}};
  const auto lock = [](const char* name, const char* kind, double ops) {
    return Json{{"lock", name},   {"kind", kind},
                {"threads", 64},  {"pattern", "sequential"},
                {"status", "ok"}, {"rounds_ops_s", {ops, ops}}};
  };
  add_results(summary,
              {{"benchmark", "lock"},
               {"machine", machine},
               {"verdict", "quiet"},
               {"results",
                {lock("auto", "ours", 1e8), lock("mcs", "ours", 3e8),
                 lock("none", "reference", 9e8), lock("pthread_mutex", "peer", 2.5e7)}}},
              "lock.json");
  const auto mpi = [](const char* name, bool ours, double us) {
    return Json{{"mpi", "Intel MPI 2021.18.1"},
                {"barrier", name},
                {"ours", ours},
                {"ranks", 16},
                {"latency_us", {us, nullptr}}};
  };
  add_results(summary,
              {{"benchmark", "mpi"},
               {"machine", machine},
               {"results", {mpi("tuned recursive doubling", false, 37), mpi("muster", true, 0.1)}}},
              "mpi.json");
  const auto predicted = [](const char* name, double us) {
    return Json{{"algorithm", name}, {"ranks", 128}, {"latency_us", us}};
  };
  add_results(summary,
              {{"about", "Two of something: 128 cores"},
               {"results", {predicted("topo-NUMA", 2), predicted("base-bruck", 7)}}},
              "sim.json");
  const auto predicted_lock = [](const char* name, double a_second, Json fairness = 1.5) {
    return Json{{"lock", name},
                {"pattern", "sequential"},
                {"threads", 63},
                {"throughput_ops_s", a_second},
                {"fairness", std::move(fairness)}};
  };
  add_results(summary,
              {{"about", "Two of something: 128 cores"},
               {"window", 1},
               {"results",
                {predicted_lock("rcl", 4e7), predicted_lock("auto", 3.9e7),
                 predicted_lock("mcs", 8e6), predicted_lock("starves", 1e7, nullptr)}}},
              "sim-lock.json");
  const std::string text = findings_to_text(summary);
  EXPECT_THAT(text, HasSubstr("5.0 times as fast"));  // not beside our own auto
  EXPECT_THAT(text, HasSubstr("4.0 times as fast"));  // not beside our own mcs, nor no lock
  EXPECT_THAT(text, HasSubstr("370 times as fast"));
  EXPECT_THAT(text, HasSubstr("predicted: barriers"));
  EXPECT_THAT(text, HasSubstr("by the model, of Two of something; not measured"));
  for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
    EXPECT_LE(text.find('\n', from) - from, 80U) << text;
  }
  EXPECT_THAT(sentences(summary)[2], HasSubstr("preload libmuster_mpi_preload.so"));
  EXPECT_THAT(sentences(summary), Each(Not(HasSubstr("3.5"))));  // a prediction is no result
}

TEST(Summary, AnotherFileIsRefused) {
  ResultSummary summary;
  EXPECT_THROW(add_results(summary, Json::object(), "x"), Error);
  EXPECT_THROW(add_results(summary, {{"benchmark", "bread"}}, "x"), Error);
  EXPECT_THROW(add_results(summary, Json(Json::value_t::discarded), "x"), Error);
}

}  // namespace
}  // namespace muster::bench
