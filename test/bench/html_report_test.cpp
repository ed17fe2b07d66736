// SPDX-License-Identifier: BSD-3-Clause
#include "bench/html_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/again.hpp"
#include "machine/error.hpp"

namespace muster::bench {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

Json measured() {
  return Json::parse(R"({"from": null, "machine": {"model": "A & B <x>", "cpus": 4, "kernel": "L"},
    "build": {"commit": "abc"}, "noise": {"verdict": "noisy", "why": "\"others\""},
    "cpus": [0, 1, 2, 3], "rounds": 5,
    "levels": [{"pairs": 2, "median_ns": 25, "p10_ns": 24, "p90_ns": 26, "hwloc": "L3",
                "agreement": 0.5, "groups": [[0, 1], [2, 3]]},
               {"pairs": 4, "median_ns": 200, "p10_ns": null, "p90_ns": 210, "hwloc": null,
                "agreement": null, "groups": [[0, 1, 2, 3]]}],
    "hwloc": [], "caches": [{"level": "L2", "bytes": 524288, "count": 2}],
    "numa": {"nodes": [0, 2], "distances": [10, 21, 22, 10]}})");
}

Json sim(double us) {
  Json row{{"algorithm", "mcs"},        {"ranks", 4},
           {"map_by", "core"},          {"latency_us", us},
           {"latency_us_low", us * .8}, {"latency_us_high", us * 1.5}};
  return {{"machine", "oak"}, {"about", "Oak: 8 cores"}, {"results", {row}}};
}

Json barrier() {
  Json row{{"implementation", "muster"},
           {"algorithm", "mcs"},
           {"via", "c"},
           {"status", "ok"},
           {"mode", "threads"},
           {"participants", 4},
           {"map_by", "core"},
           {"regime", nullptr},
           {"wait_asked", "auto"},
           {"latency_ns", {{"mean", 1000}}},
           {"rank", 1}};
  return {{"benchmark", "barrier"},
          {"machine", {{"model", "This"}, {"cpus", 4}, {"kernel", "L"}}},
          {"settings",
           {{"algorithms", {"all"}},
            {"participants", {2, 4}},
            {"modes", {"threads", "processes"}},
            {"map_by", "core"},
            {"waits", {"auto"}},
            {"regimes", Json::array()},
            {"peers", {"all"}},
            {"seconds", 25.0},
            {"rounds", 5}}},
          {"results", {row}}};
}

Json mpi() {
  return {{"benchmark", "mpi"},
          {"settings",
           {{"ranks", {2, 4}},
            {"rounds", 3},
            {"seconds", 0.1},
            {"hopeless", 50.0},
            {"only", ""},
            {"own_algorithms", false}}},
          {"machine", {{"model", "This"}, {"cpus", 4}, {"kernel", "L"}}},
          {"results", Json::array()}};
}

TEST(HtmlReport, TellsWhatIsThereAndNothingElse) {
  const std::string page = html_report(
      {"some <folder>", {{"measure", measured()}}, {}, {{"topo", "<svg id=\"a#b\"/>"}}});
  EXPECT_THAT(page, HasSubstr("<title>Muster: some &lt;folder&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("A &amp; B &lt;x&gt;, 4 CPUs"));
  EXPECT_THAT(page, HasSubstr("noisy: &quot;others&quot;"));
  EXPECT_THAT(page, HasSubstr("<td>level 1</td><td>2 of 2</td><td class=n>2</td>"
                              "<td class=n>25.0 ns</td>"));
  EXPECT_THAT(page, HasSubstr("L3, 50 %"));
  EXPECT_THAT(page, HasSubstr("2 x L2 512 KiB"));
  EXPECT_THAT(page, HasSubstr("<td>2</td><td class=n>22</td><td class=n>10</td>"));
  EXPECT_THAT(page, HasSubstr("%3Csvg id=%22a%23b%22/%3E"));
  EXPECT_THAT(page, HasSubstr("muster measure --cpus 0,1,2,3 --rounds 5 --output results\n"));
  EXPECT_THAT(page, HasSubstr("No measure.svg"));
  for (const char* const absent : {"id=mpi", "id=barrier", "id=predicted", "id=doctor"})
    EXPECT_THAT(page, Not(HasSubstr(absent)));
}

TEST(HtmlReport, NeedsNoNetwork) {
  const std::string page = html_report({"r",
                                        {{"measure", measured()}, {"sim", sim(2)}},
                                        {},
                                        {{"sim", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"}}});
  for (const char* const reaches : {"href", "<script", "url(", "@import", "src=\"http", "<link"})
    EXPECT_THAT(page, Not(HasSubstr(reaches)));
}

TEST(HtmlReport, PutsPredictedBesideMeasured) {
  std::string page = html_report({"r", {{"sim", sim(1.5)}, {"barrier", barrier()}}, {}, {}});
  EXPECT_THAT(page, HasSubstr("Predicted for oak, measured on This."));
  EXPECT_THAT(page, HasSubstr("<td class=n>1.00 us</td><td class=n>1.50 us</td>"
                              "<td class=n>1.20 us - 2.25 us</td><td class=n>+50 %</td>"));
  Json other = sim(1.5);
  other["results"][0]["ranks"] = 128;
  page = html_report({"r", {{"sim", other}, {"barrier", barrier()}}, {}, {}});
  EXPECT_THAT(page, HasSubstr("No setting is in both"));
  EXPECT_THAT(page, HasSubstr("--ranks 4 --output r"));
}

TEST(HtmlReport, ShowsThePictureOfMpis) {
  const std::string page = html_report({"r", {{"mpi", mpi()}}, {}, {{"mpi", "<svg id=\"m\"/>"}}});
  EXPECT_THAT(page, HasSubstr("<h2 id=mpi>MPI_Barrier</h2>\n<figure>"));
  EXPECT_THAT(page, Not(HasSubstr("id=groups")));  // it is not shown twice
}

TEST(HtmlReport, FitsPaperAndHasNoEmptyRow) {
  const Json findings{{"findings", Json::array()}};
  const std::string page = html_report({"r", {{"doctor", findings}, {"sim", sim(2)}}, {}, {}});
  EXPECT_THAT(page, HasSubstr("max-height: 22cm"));
  EXPECT_THAT(page, HasSubstr("<td>sim.json</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<td>doctor.json</td>")));
}

TEST(HtmlReport, SplitsWaits) {
  const Json job = Json::parse(R"({"schema": 1, "process": 7, "communicators": [
    {"called": "MPI_COMM_<WORLD>", "ranks": 2, "communicators": 1, "barriers": 5000,
     "served_by": "Muster", "spent_s": 0.5, "waiting_for_the_last_s": 0.4,
     "in_the_barrier_s": 0.1, "by_rank": [{"came_last": 50}, {"came_last": 4950}]},
    {"called": "far", "ranks": 2, "communicators": 1, "barriers": 1, "served_by": "MPI",
     "spent_s": 0}]})");
  const std::string page = html_report({"r", {}, {job}, {}});
  EXPECT_THAT(page, HasSubstr("MPI_COMM_&lt;WORLD&gt;"));
  EXPECT_THAT(page, HasSubstr("<td class=n>500 ms</td><td class=n>400 ms (80 %)</td>"
                              "<td class=n>100 ms (20 %)</td><td>its rank 1, 99 %</td>"));
  EXPECT_THAT(page, HasSubstr("<td class=n>not known</td>"));
  EXPECT_THROW(html_report({"r", {}, {Json{{"communicators", 1}}}, {}}), Error);
}

TEST(HtmlReport, RefusesWhatIsNoResult) {
  EXPECT_THROW(html_report({"r", {{"measure", Json{{"levels", 3}}}}, {}, {}}), Error);
  EXPECT_THROW(html_report({"r", {{"barrier", Json::object()}}, {}, {}}), Error);
}

TEST(Again, SaysTheCommand) {
  EXPECT_EQ(command_of("barrier", barrier()),
            "muster bench barrier --algorithms all --participants 2,4 --mode threads,processes "
            "--map-by core --wait auto --peers all --seconds 25.0 --rounds 5 --output results");
  EXPECT_EQ(command_of("mpi", mpi()),
            "muster bench mpi --ranks 2,4 --rounds 3 --seconds 0.1 --hopeless 50.0 --defaults "
            "--output results");
  Json of_one = mpi();
  of_one["settings"]["only"] = "Open MPI";
  EXPECT_THAT(command_of("mpi", of_one), HasSubstr(" --only 'Open MPI' "));
  EXPECT_EQ(command_of("mpi", Json{{"settings",
                                    {{"participants", {2, 4}},
                                     {"regimes", {"quiet", "hogs"}},
                                     {"turn_ms", 100.0},
                                     {"rounds", 7}}}}),
            "muster bench mpi --ranks 2,4 --regime quiet,hogs --turn 100.0 --rounds 7 "
            "--output results");
  EXPECT_EQ(command_of("sim", sim(1)),
            "muster sim barrier --machine oak --algorithms mcs --ranks 4 --map-by core --output "
            "results");
}

}  // namespace
}  // namespace muster::bench
