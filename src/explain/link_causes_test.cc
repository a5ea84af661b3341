// Causes in the links.
#include <gtest/gtest.h>

#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

void use_network(Report& run, double sent, double received) {
  for (TaskReport& task : run.tasks) {
    if (task.links.empty()) continue;
    task.links = {tcp_link(task, sent, received)};
  }
}

const StagedRun kStagedLinks[] = {
    {"a full link", Limit::kLink, "ps:0",
     "ps:0's link carries 116 MB/s of the 119 that it can, and the workers wait 38% of their "
     "time "
     "for it. --ps 2 --workers 2: 13.33 → 20 steps/s.",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
       run.expected->steps_per_s = 13.4;
       run.expected->other_ways = {{"", 9}, {"--ps 2 --workers 2", 20.1}};
       use_network(run, 50e6, 58e6);
     }},
    {"a wire that is too wide", Limit::kWire, "ps:0",
     "the workers wait 38% of their time for it. --ps 1 --workers 2 --wire bfloat16: 13.33 → 20",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
       run.expected->steps_per_s = 13.4;
       run.expected->way = "--ps 1 --workers 2";
       run.expected->other_ways = {
           {"--ps 1 --workers 2 --wire bfloat16", 20.1},
           {"--ps 2 --workers 2", 20.1},
           {"--ps 1 --workers 2 --strategy local_sgd --local-steps 20", 20.4}};
       use_network(run, 50e6, 58e6);
     }},
    {"a wire that is too wide for a link that is used in turns", Limit::kWire, "ps:0",
     "Workers wait 38% of their time for values and for each other. --ps 1 --workers 2 --wire int8",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
       run.expected->steps_per_s = 13.4;
       run.expected->way = "--ps 1 --workers 2";
       run.expected->other_ways = {{"--ps 1 --workers 2 --wire int8", 19.5},
                                   {"--ps 2 --workers 2 --wire int8", 20.1}};
     }},
    {"a link that a narrower wire would fill, too", Limit::kLink, "ps:0",
     "the workers wait 69% of their time for it. --ps 1 --workers 2 --wire bfloat16: 6.667 → 13",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 2);
       run.expected->steps_per_s = 6.7;
       run.expected->way = "--ps 1 --workers 2";
       run.expected->other_ways = {{"--ps 1 --workers 2 --wire bfloat16", 13.1}};
       use_network(run, 50e6, 58e6);
     }},
    {"a throttled link", Limit::kTaskLink, "worker:1",
     "worker:1's link is slow: it carries 8.9 MB/s while it is waited for, and those of others "
     "85.7. With a link like that: 15 → ",
     [](Report& run) {
       slow_down(run.tasks[1], "pull", 1);
       use_network(run, 1e6, 6e6);
       run.tasks[1].links[0].received = 4.75e6;
     }},
    {"a throttled link whose worker waits for its own contribution", Limit::kTaskLink, "worker:1",
     "With a link like that: 2.801 → 18 steps/s.",
     [](Report& run) {
       run.strategy = "sync";
       slow_down(run.tasks[0], "wait", 6.14);
       slow_down(run.tasks[1], "pull", 3.35);
       slow_down(run.tasks[1], "wait", 0.6414);
       use_network(run, 2.5e6, 2.5e6);
       run.expected->steps_per_s = 18;
     }},
    {"a throttled link in rounds", Limit::kTaskLink, "worker:1", "worker:1's link is slow",
     [](Report& run) {
       run.strategy = "sync";
       // The measured case: the slow transfer continues while its worker waits for the round.
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "wait", 1);
       run.tasks[0].hidden_ms = 8;
       run.tasks[1].use.pressure.waited = 0.1;
       run.tasks[1].use.pressure.queued = 0.9;
       run.tasks[1].use.cores = 0.1;
       run.tasks[1].hidden_ms = 95;
       use_network(run, 6e6, 1e6);
     }},
};

TEST(LinkCauses, AreToldWithTheirTask) { expect_told(kStagedLinks); }

}  // namespace
}  // namespace paceline
