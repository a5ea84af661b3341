#include "predict/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "paceline/error.h"
#include "predict/memory_passes.h"
#include "predict/prediction_text.h"
#include "predict/shapes_to_try.h"
#include "predict/simulation/step_of_plan.h"
#include "run/network_rate.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

/// A model of 10 million parameters whose step takes 50 ms, on hosts whose links have this rate.
PredictedJob job_on(int hosts, double bytes_per_s) {
  PredictedJob job;
  job.step = [](const StepOf& of) {
    SimulatedStep step = simulated_step(ModelSizes{.parameters = 10e6, .step_seconds = 50e-3});
    step.examples = of.towers;
    return step;
  };
  for (int i = 0; i < hosts; ++i) {
    job.hosts.push_back({.name = "host " + std::to_string(i),
                         .cores = 8,
                         .bytes_per_s = 100e9,
                         .devices = 2,
                         .link_bytes_per_s = bytes_per_s,
                         .latency_s = 20e-6,
                         .machine = i});
  }
  return job;
}

// A step of 4 workers takes nearly two days, but the prediction must still be made.
TEST(PredictionTest, StepsMayTakeDays) {
  const double link = 1e3;  // bytes/s
  const Prediction made = predict(job_on(5, link), {.strategy = {"async"}, .ps = 1, .workers = 4});
  EXPECT_THAT(made.steps_per_s / (link / 40e6), DoubleNear(1, 0.1));
}

TEST(PredictionTest, TheBoundIsThatOfTheMachinesThatHaveTasks) {
  PredictedJob job = job_on(3, 10e9);
  job.hosts[0].bytes_per_s = 0.5e9;
  job.hosts[0].devices = 0;
  const Prediction made = predict(job, {.strategy = {"allreduce"}, .workers = 2});
  EXPECT_THAT(made.of_bound, AllOf(Gt(0.5), Lt(1.01)));
}

// The time that a step takes beside its kernels is that of messages between tasks, which one
// process does not send.
TEST(PredictionTest, AShortStepOfOneProcessTakesHardlyMoreThanItsKernels) {
  PredictedJob job = job_on(1, 0);
  job.step = [](const StepOf&) {
    return simulated_step(ModelSizes{.parameters = 1000, .step_seconds = 50e-6});
  };
  EXPECT_THAT(predict_alone(job).steps_per_s, AllOf(Gt(18'000), Lt(20'000)));
}

// The step takes hardly longer than its rule's pass, which moves 12 bytes of each parameter.
TEST(PredictionTest, RulesPassFasterOverWhatTheCachesHold) {
  const auto times_as_fast = [](double parameters) {
    PredictedJob job = job_on(1, 0);
    job.step = [&](const StepOf&) {
      return simulated_step(ModelSizes{.parameters = parameters, .step_seconds = 1e-9});
    };
    job.hosts[0].rule_bytes_per_s = 1e8;
    const double uncached = predict_alone(job).steps_per_s;
    job.hosts[0].cached_rule_bytes_per_s = 1e9;
    return predict_alone(job).steps_per_s / uncached;
  };
  const double held = double(cache_bytes()) / 12;
  EXPECT_THAT(times_as_fast(0.1 * held), DoubleNear(10, 0.5));
  EXPECT_THAT(times_as_fast(0.9 * held), AllOf(Gt(1.05), Lt(1.5)));
  EXPECT_EQ(times_as_fast(2 * held), 1);
}

TEST(PredictionTest, DevicesAreTheLimitWhereLinksAreFast) {
  const Prediction made = predict(job_on(4, 10e9), {.strategy = {"async"}, .ps = 1, .workers = 4});
  EXPECT_THAT(made.steps_per_s, DoubleNear(80, 5));
  EXPECT_THAT(made.times_alone, DoubleNear(4, 0.3));
  EXPECT_THAT(made.limit, HasSubstr("the devices compute"));
  EXPECT_THAT(made.low, Lt(made.steps_per_s));
  EXPECT_THAT(made.high, Gt(made.steps_per_s));
}

TEST(PredictionTest, ALinkIsNamedWithWhatItCarriesAndWhatIsWanted) {
  const Prediction made = predict(job_on(8, 100e6), {.strategy = {"async"}, .ps = 1, .workers = 8});
  EXPECT_THAT(made.limit, HasSubstr("ps:0's link carries 100 MB/s; 8 workers ask for"));
  EXPECT_THAT(made.of_bound, DoubleNear(1, 0.1));
}

// The links could carry ten times as much as the path between two of the hosts.
TEST(PredictionTest, ANarrowPairIsNamedWithWhatItCarriesAndWhatIsWanted) {
  PredictedJob job = job_on(3, 1e9);
  job.pairs = {{.from = 0, .to = 1, .bytes_per_s = 50e6}, {.from = 1, .to = 0, .bytes_per_s = 1e9}};
  const JobShape shape{.strategy = {"async"}, .ps = 1, .workers = 1};
  const Prediction made = predict(job, shape);
  EXPECT_THAT(made.limit, HasSubstr("the network from host 0 to host 1 carries 50 MB/s; 1 worker"));
  EXPECT_THAT(made.of_bound, DoubleNear(1, 0.1));
  job.pairs[0].bytes_per_s = 0;
  EXPECT_THAT(predict(job, shape).steps_per_s, Gt(3 * made.steps_per_s));
}

// Of three workers, one is behind a link that carries 2.5 of its steps a second.
TEST(PredictionTest, AWorkerBehindASlowLinkHoldsUpNoOther) {
  PredictedJob job = job_on(4, 10e9);
  job.hosts[3].link_bytes_per_s = 100e6;
  const Prediction made = predict(job, {.strategy = {"async"}, .ps = 1, .workers = 3});
  EXPECT_THAT(made.steps_per_s, AllOf(Gt(35), Lt(43)));
  EXPECT_THAT(made.of_bound, AllOf(Gt(0.85), Lt(1.02)));
}

// In each step, a core of ps:0 sends 40 MB and receives 40 MB.
TEST(PredictionTest, WhatACoreSendsAndReceivesIsALimitOfALinkWithoutOne) {
  PredictedJob job = job_on(2, 0);
  for (PredictedHost& host : job.hosts) {
    host.cores = 1;
    host.tcp_send_bytes_per_s = host.tcp_receive_bytes_per_s = 200e6;
  }
  const JobShape shape{.strategy = {"async"}, .ps = 1, .workers = 1, .worker_hosts = {1}};
  const double slow = predict(job, shape).steps_per_s;
  EXPECT_THAT(slow, Lt(200e6 / 40e6));
  for (PredictedHost& host : job.hosts) {
    host.tcp_send_bytes_per_s = host.tcp_receive_bytes_per_s = 20e9;
  }
  EXPECT_THAT(predict(job, shape).steps_per_s, Gt(2 * slow));
}

// A step sends 40 MB in each direction. Both ends of a link that leaves the host encrypt or decrypt
// them.
TEST(PredictionTest, EncryptingTakesACoreItsTime) {
  PredictedJob job = job_on(2, 0);
  for (PredictedHost& host : job.hosts) {
    host.cores = 1;
    host.cipher_bytes_per_s = 200e6;
  }
  const JobShape apart{.strategy = {"async"}, .ps = 1, .workers = 1, .worker_hosts = {1}};
  const JobShape together{
      .strategy = {"async"}, .ps = 1, .workers = 1, .ps_hosts = {0}, .worker_hosts = {0}};
  const auto steps_per_s = [&](Tls tls, const JobShape& shape) {
    job.tls = tls;
    return predict(job, shape).steps_per_s;
  };
  EXPECT_THAT(steps_per_s(Tls::kOffHost, apart), Lt(200e6 / 40e6));
  EXPECT_THAT(steps_per_s(Tls::kNever, apart), Gt(2 * steps_per_s(Tls::kOffHost, apart)));
  EXPECT_EQ(steps_per_s(Tls::kAlways, apart), steps_per_s(Tls::kOffHost, apart));
  EXPECT_EQ(steps_per_s(Tls::kOffHost, together), steps_per_s(Tls::kNever, together));
  EXPECT_THAT(steps_per_s(Tls::kAlways, together), Lt(0.9 * steps_per_s(Tls::kNever, together)));
}

TEST(PredictionTest, TasksThatShareCoresSendSomeOfTheirBytesWithinOne) {
  PredictedJob job = job_on(1, 0);
  job.share_memory = false;
  PredictedHost& host = job.hosts[0];
  host.cores = 2;
  host.devices = 4;
  host.tcp_send_bytes_per_s = host.tcp_receive_bytes_per_s = 200e6;
  const JobShape two{.strategy = {"async"}, .ps = 1, .workers = 1};
  const JobShape four{.strategy = {"async"}, .ps = 1, .workers = 3};
  const double before_two = predict(job, two).steps_per_s,
               before_four = predict(job, four).steps_per_s;
  host.core_tcp_send_bytes_per_s = host.core_tcp_receive_bytes_per_s = 20e9;
  EXPECT_EQ(predict(job, two).steps_per_s, before_two) << "each task has a core";
  EXPECT_THAT(predict(job, four).steps_per_s, Gt(1.2 * before_four)) << "a third stays in one";
}

TEST(PredictionTest, AStragglerIsNamedAndABackupWorkerHelps) {
  PredictedJob job = job_on(5, 10e9);
  job.straggler = 2;
  job.straggler_times = 3;
  JobShape shape{.strategy = {"sync"}, .ps = 1, .workers = 4};
  const Prediction all = predict(job, shape);
  EXPECT_THAT(all.limit, HasSubstr("worker:2, whose steps take 3 times as long"));
  EXPECT_THAT(all.of_bound, DoubleNear(1, 0.1));
  shape.strategy.replicas = 3;
  const Prediction three = predict(job, shape);
  EXPECT_THAT(three.steps_per_s, Gt(2 * all.steps_per_s));
  EXPECT_THAT(three.of_bound, AllOf(Gt(0.8), Lt(1.01)));
}

TEST(PredictionTest, EveryTaskHasAHostOfItsOwnWhereThereAreEnough) {
  const PredictedJob job = job_on(6, 100e6);
  const JobShape chosen{.strategy = {"async"}, .ps = 2, .workers = 4};
  JobShape apart = chosen, beside = chosen;
  apart.ps_hosts = {0, 1};
  apart.worker_hosts = {2, 3, 4, 5};
  beside.ps_hosts = {0, 1};
  beside.worker_hosts = {0, 1, 2, 3};
  EXPECT_EQ(predict(job, chosen).steps_per_s, predict(job, apart).steps_per_s);
  EXPECT_NE(predict(job, chosen).steps_per_s, predict(job, beside).steps_per_s);
  const PredictedJob few = job_on(4, 100e6);
  EXPECT_EQ(predict(few, chosen).steps_per_s, predict(few, beside).steps_per_s);
}

TEST(PredictionTest, AParameterServerRunsOnTheHostThatHasNoDevice) {
  PredictedJob job = job_on(4, 100e6);
  job.hosts[2].devices = 0;
  const JobShape shape{.strategy = {"async"}, .ps = 1, .workers = 3};
  JobShape placed = shape;
  placed.ps_hosts = {2};
  placed.worker_hosts = {0, 1, 3};
  EXPECT_EQ(predict(job, shape).steps_per_s, predict(job, placed).steps_per_s);
}

TEST(PredictionTest, TheInputIsALimit) {
  PredictedJob job = job_on(4, 10e9);
  job.input_steps_per_s = 30;
  const Prediction made = predict(job, {.strategy = {"async"}, .ps = 1, .workers = 4});
  EXPECT_THAT(made.steps_per_s, DoubleNear(30, 1e-9));
  EXPECT_THAT(made.limit, HasSubstr("the input gives 30 steps/s"));
}

TEST(PredictionTest, WorkersWithoutADeviceAreRefused) {
  EXPECT_THROW(predict(job_on(2, 1e9), {.strategy = {"async"}, .ps = 1, .workers = 5}), Error);
}

TEST(PredictionTest, TheFastestWayIsFirstAndOnThePage) {
  ShapesAsked asked;
  asked.workers = 4;
  asked.links = true;
  const std::vector<JobShape> shapes = shapes_to_try(asked);
  std::vector<JobShape> known;
  const std::vector<Prediction> all =
      predict_all(job_on(4, 100e6), shapes, [&](const Prediction& it) {
        known.push_back(it.shape);
      }).made;
  ASSERT_EQ(all.size(), shapes.size());
  EXPECT_EQ(known, shapes) << "each is known once it is made";
  EXPECT_TRUE(std::ranges::is_sorted(all, std::ranges::greater(), &Prediction::steps_per_s));
  EXPECT_THAT(all, Contains(Field(&Prediction::shape, Field(&JobShape::strategy,
                                                            Field(&Strategy::name, "allreduce")))));
  EXPECT_THAT(all, Contains(Field(&Prediction::shape, Field(&JobShape::workers, 1))));
  const std::size_t width = width_of(shapes);
  std::string table = prediction_head(width);
  for (const Prediction& it : all) table += prediction_row(it, width);
  EXPECT_THAT(table, AllOf(HasSubstr("one process"), HasSubstr("80% between"),
                           HasSubstr("sync, 2 ps + 4 workers, bfloat16")));
  EXPECT_THAT(prediction_json(all, "net"), HasSubstr("\"times_alone\""));
  const std::string plot = prediction_plot(all, "net", "svg", "picture");
  std::set<std::string> strategies;
  for (const Prediction& it : all) {
    if (!it.shape.is_one_process()) strategies.insert(it.shape.strategy.name);
  }
  const std::string titles = plot.substr(plot.find("\nplot "));
  std::size_t curves = 0;
  for (std::size_t at = 0; (at = titles.find(" title '", at)) != titles.npos; ++at) ++curves;
  EXPECT_EQ(curves, strategies.size() + 2) << "and the bound, and one process";
}

TEST(PredictionTest, WaysThatNobodyWaitsForAreLeftAndNamed) {
  ShapesAsked asked;
  asked.workers = 4;
  const std::vector<JobShape> shapes = shapes_to_try(asked);
  PredictedJob job = job_on(4, 100e6);
  std::size_t known = 0;
  job.gives_up = [&] { return known == 3; };
  const Predictions all = predict_all(job, shapes, [&](const Prediction&) { ++known; });
  EXPECT_EQ(all.made.size(), 3u);
  EXPECT_EQ(all.untried, std::vector<JobShape>(shapes.begin() + 3, shapes.end()));
  EXPECT_THAT(untried_text(all.untried, 30),
              AllOf(HasSubstr("Not tried within 30 s (--time-limit): "),
                    HasSubstr("; " + shapes.back().text() + "\n")));
}

TEST(PredictionTest, AWayThatTakesTooLongIsGivenUpInTheMiddle) {
  ShapesAsked asked;
  asked.workers = 4;
  PredictedJob job = job_on(4, 100e6);
  int asked_for = 0;
  job.gives_up = [&] { return ++asked_for > 1; };
  const Predictions all = predict_all(job, shapes_to_try(asked));
  EXPECT_EQ(all.made.size(), 0u);
  EXPECT_EQ(all.untried, shapes_to_try(asked));
}

TEST(PredictionTest, LocalStepsAreFasterOnSlowLinksAndSaidToLearnLess) {
  ShapesAsked asked;
  asked.workers = 4;
  asked.ps = 1;
  asked.links = true;
  asked.wire = WireForm{};
  const std::vector<Prediction> all = predict_all(job_on(4, 100e6), shapes_to_try(asked)).made;
  const Prediction& best = all.front();
  EXPECT_EQ(best.shape.text(), "local_sgd H=20, 1 ps + 4 workers");
  EXPECT_THAT(best.times_alone, AllOf(Gt(2), Lt(4)));
  EXPECT_THAT(best.of_bound, AllOf(Gt(0.8), Lt(1.01)));
  EXPECT_THAT(
      fastest_text(all),
      AllOf(HasSubstr("The fastest: --ps 1 --workers 4 --strategy local_sgd --local-steps 20 ("),
            HasSubstr("Without local steps: "), HasSubstr("make 20 steps on their own")));
}

TEST(PredictionTest, TheWaitForARoundIsTheLimitOfLocalSteps) {
  const JobShape shape{.strategy = {.name = "local_sgd", .local_steps = 40, .outer_fragments = 1},
                       .ps = 1,
                       .workers = 4};
  const Prediction made = predict(job_on(5, 100e6), shape);
  EXPECT_THAT(made.limit, HasSubstr("in which 40 steps are made, workers wait"));
}

TEST(ShapesTest, LocalStepsAreTriedWhereThereAreLinksOrTheyAreAskedFor) {
  ShapesAsked asked;
  asked.workers = 4;
  const auto has_local = [&] {
    return std::ranges::any_of(shapes_to_try(asked), &JobShape::makes_local_steps);
  };
  EXPECT_FALSE(has_local());
  asked.links = true;
  EXPECT_TRUE(has_local());
  asked.links = false;
  asked.strategy.name = "local_sgd";
  asked.strategy.local_steps = 50;
  asked.ps = 1;
  const std::vector<JobShape> shapes = shapes_to_try(asked);
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[1].text(), "local_sgd H=50, 1 ps + 4 workers");
  EXPECT_EQ(flags_of(shapes[1]), "--ps 1 --workers 4 --strategy local_sgd --local-steps 50");
  asked.strategy.outer_fragments = 4;
  EXPECT_THAT(flags_of(shapes_to_try(asked)[1]), HasSubstr("--outer-fragments 4"));
}

TEST(HostsText, SaysWhatLiesBetweenTwoOfThem) {
  std::vector<SimulatedPair> pairs = {{0, 1, kPayloadOfGigabit, 0, 0.002}};
  EXPECT_EQ(pairs_text({}), "");
  EXPECT_EQ(pairs_text(pairs), "Between two of them: 1 Gbit/s, 2 ms one way\n");
  pairs.push_back({1, 0, kPayloadOfGigabit / 10, 0, 0.02});
  EXPECT_EQ(pairs_text(pairs), "Between two of them: 0.1 to 1 Gbit/s, 2 to 20 ms one way\n");
}

TEST(HostsText, SaysWhatEachKindOfHostCanDo) {
  const PredictedHost node{.name = "node 0",
                           .cores = 2.5,
                           .flops_per_s = 2e12,
                           .bytes_per_s = 180e9,
                           .link_bytes_per_s = 118.9e6};
  PredictedHost store = node;
  store.name = "store";
  store.cores = 1;
  store.link_bytes_per_s = 0;
  PredictedHost next = node;
  next.name = "node 1";
  EXPECT_EQ(hosts_text(std::vector<PredictedHost>{node, next, store}),
            "node 0 to node 1, each: 2.5 cores, 2,000 GFLOP/s, 180 GB/s, a link of 1 Gbit/s\n"
            "store: 1 core, 2,000 GFLOP/s, 180 GB/s, a link without a known limit\n");
}

TEST(ShapesTest, TheFormOfContributionsIsKeptAndNamed) {
  ShapesAsked asked;
  asked.strategy.name = "async";
  asked.ps = 1;
  asked.workers = 2;
  asked.wire = WireForm{{DType::kUInt8, 8}};
  const JobShape shape = shapes_to_try(asked).back();
  EXPECT_EQ(shape.text(), "async, 1 ps + 2 workers, int8, 8 of 256");
  EXPECT_EQ(flags_of(shape), "--ps 1 --workers 2 --wire int8 --top-k 8");
  // flags_of also names --accumulate, which advice for fewer bytes on the wire uses.
  asked.accumulate = 4;
  EXPECT_EQ(flags_of(shapes_to_try(asked).back()),
            "--ps 1 --workers 2 --accumulate 4 --wire int8 --top-k 8");
}

TEST(ShapesTest, WhatBecomesOfLateContributionsIsKept) {
  ShapesAsked asked;
  asked.strategy.name = "sync";
  asked.workers = 4;
  asked.strategy.replicas = 3;
  asked.strategy.late = LateContribution::kFold;
  const JobShape shape = shapes_to_try(asked).back();
  EXPECT_EQ(shape.strategy.late, LateContribution::kFold);
  EXPECT_THAT(flags_of(shape), HasSubstr("--replicas-to-aggregate 3 --late fold"));
}

TEST(ShapesTest, HybridIsTriedWhereAModelHasSparseVariables) {
  ShapesAsked asked;
  asked.workers = 2;
  const auto has_hybrid = [&] {
    return std::ranges::any_of(shapes_to_try(asked), [](const JobShape& shape) {
      return shape.kind().splits_variables();
    });
  };
  EXPECT_FALSE(has_hybrid());
  asked.sparse = true;
  EXPECT_TRUE(has_hybrid());
}

TEST(ShapesTest, OneProcessIsTriedWithFewerDevicesThanWorkersHave) {
  ShapesAsked asked;
  asked.towers = 8;
  asked.most_workers = 1;
  asked.strategy.name = "async";
  asked.ps = 1;
  std::vector<std::string> texts, flags;
  for (const JobShape& shape : shapes_to_try(asked)) {
    texts.push_back(shape.text());
    flags.push_back(flags_of(shape));
  }
  EXPECT_THAT(texts,
              ElementsAre("one process", "one process, 2 devices", "one process, 4 devices",
                          "one process, 8 devices", "async, 1 ps + 1 worker, 8 devices each"));
  EXPECT_THAT(flags, ElementsAre("", "--towers 2", "--towers 4", "--towers 8",
                                 "--ps 1 --workers 1 --towers 8"));
}

TEST(PredictionTest, DevicesOfOneProcessAreComparedByTheirExamples) {
  const PredictedJob job = job_on(1, 0);
  const Prediction alone = predict_alone(job), several = predict(job, {.towers = 4}, alone);
  EXPECT_EQ(alone.times_alone, 1);
  EXPECT_THAT(several.examples_per_s, DoubleNear(4 * several.steps_per_s, 1e-9));
  EXPECT_THAT(several.times_alone, DoubleNear(several.examples_per_s / alone.examples_per_s, 1e-9));
}

TEST(ShapesTest, WhatTheUserHasFixedIsKept) {
  ShapesAsked asked;
  asked.strategy.name = "sync";
  asked.ps = 2;
  asked.workers = 4;
  const std::vector<JobShape> shapes = shapes_to_try(asked);
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].text(), "one process");
  EXPECT_EQ(shapes[1].text(), "sync, 2 ps + 4 workers");
  EXPECT_EQ(flags_of(shapes[1]), "--ps 2 --workers 4 --strategy sync");
  EXPECT_EQ(flags_of(shapes[0]), "");
}

}  // namespace
}  // namespace paceline
