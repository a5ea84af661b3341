#include "bench/executor_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/cores.h"
#include "bench/timing.h"
#include "models/mlp.h"
#include "models/ptb.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline::bench {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr int kMostBuilds = 5;  // each build may take seconds

void measure_chain(Recorder& recorder, const TinyChain& chain, int threads) {
  const std::string name =
      fmt::format("{}, {} element{}, {} thread{}", chain.name, chain.elements,
                  chain.elements == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
  recorder.progress(name);
  const auto runner = make_runner(chain, threads);
  std::vector<double> times = time_calls(recorder.repeats(), 0.01, [&] { runner->run(); });
  for (double& time : times) time *= kNanosPerSecond / kChainOps;
  recorder.add(figure_of(name, "ns", times));
}

std::vector<double> account_call_seconds(int repeats) {
  const RealClock clock;
  StepAccount account(clock);
  account.reset();
  return time_calls(repeats, 0.01, [&] { account.change_to(Activity::kCompute); });
}

void measure_accounting(Recorder& recorder, const models::Model& model) {
  recorder.progress(fmt::format("step accounting of {}", model.name()));
  Runner runner(std::move(model.step_graphs(model.settings())[0]),
                {.threads = usable_cores(), .fuse = true});
  runner.run();
  const std::int64_t before = runner.account_calls();
  runner.run();
  const auto calls = double(runner.account_calls() - before);
  const auto steps = time_calls(recorder.repeats(), 0, [&] { runner.run(); });
  const auto cost = account_call_seconds(recorder.repeats());
  std::vector<double> percent;
  for (std::size_t i = 0; i < steps.size(); ++i)
    percent.push_back(100 * calls * cost[i] / steps[i]);
  recorder.add(figure_of(fmt::format("accounting of {}, {} calls a step", model.name(), calls), "%",
                         percent));
}

// Returns the seconds until a session of `layers` layers is ready for its first step.
double seconds_to_build(int layers) {
  const RealClock clock;
  const TimePoint start = clock.now();
  Graph graph;
  const Value x = graph.input("x", {4, 8});
  Value h = x;
  for (int i = 0; i < layers; ++i) h = dense(h, 8, fmt::format("layer{}", i));
  RunOptions run;
  run.quiet = true;
  const Session session(minimize(mean_squared_error(h, x), Sgd{}), Cluster(), run);
  return std::chrono::duration<double>(clock.now() - start).count();
}

void measure_building(Recorder& recorder, int layers) {
  const std::string name = fmt::format("building {} dense layers", layers);
  recorder.progress(name);
  std::vector<double> seconds(std::size_t(std::min(recorder.repeats(), kMostBuilds)));
  for (double& each : seconds) each = seconds_to_build(layers);
  recorder.add(figure_of(name, "s", seconds));
}

}  // namespace

const std::vector<TinyChain>& tiny_chains() {
  static const auto add_x = [](int, Value y, Value x) { return add(y, x); };
  static const auto rescale = [](int i, Value y, Value) { return scale(y, 1 + 1e-6 * i); };
  static const std::vector<TinyChain> chains = {
      {"add", 1, add_x},
      {"add", 8, add_x},
      {"scale", 1, rescale},
      {"scale", 8, rescale},
      {"add and scale", 8,
       [](int i, Value y, Value x) { return i % 2 == 0 ? add(y, x) : scale(y, 0.5); }},
      {"tanh", 8, [](int, Value y, Value) { return tanh(y); }},
  };
  return chains;
}

std::unique_ptr<Runner> make_runner(const TinyChain& chain, int threads) {
  models::StepGraph step{.section = "", .graph = std::make_unique<Graph>(), .training = {}};
  const Value x = step.graph->input("x", {chain.elements});
  Value y = x;
  for (int i = 0; i < kChainOps; ++i) y = chain.link(i, y, x);
  step.fetches = {y};
  auto runner =
      std::make_unique<Runner>(std::move(step), Runner::Options{.threads = threads, .fuse = false});
  PACELINE_CHECK(runner->plan().kernels.size() == std::size_t(kChainOps));
  std::fill_n(runner->view("x").as<float>(), chain.elements, 0.001f);
  return runner;
}

void measure_executor(Recorder& recorder) {
  std::vector<int> counts = {1};
  if (usable_cores() > 1) counts.push_back(usable_cores());
  for (const int threads : counts) {
    for (const TinyChain& chain : tiny_chains()) measure_chain(recorder, chain, threads);
  }
  for (const models::Model* model : {&models::mlp_model(), &models::ptb_model()}) {
    measure_accounting(recorder, *model);
  }
  for (const int layers : {4000, 20000}) measure_building(recorder, layers);
}

}  // namespace paceline::bench
