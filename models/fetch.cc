#include "models/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "paceline/error.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kUntimed = 10;
constexpr std::int64_t kTurn = 50;
// Memory for the times of up to this number of steps is reserved before the first step.
constexpr std::int64_t kReserved = 1 << 16;
constexpr double kForever = 1e9;

using Seconds = std::vector<double>;

double mean(const Seconds& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / double(times.size());
}

double median(Seconds times) {
  const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}
double median_us(Seconds times) { return median(std::move(times)) * 1e6; }

/// The limits on the timed steps of one kind and shape. Timing ends when the number of steps or the
/// seconds are reached.
struct Limit {
  std::int64_t steps = 0;
  double seconds = 0;
};

/// Times steps of one kind. Two kinds take short turns, since the clock rate of a core may change
/// by half within a second: so both kinds run at nearly the same clock rates.
class TimedSteps {
 public:
  TimedSteps(const Limit& limit, std::function<void()> step)
      : limit_(limit), step_(std::move(step)) {
    times_.reserve(std::size_t(std::min(limit.steps, kReserved)));
    for (std::int64_t i = 0; i < kUntimed; ++i) step_();
  }

  bool ended() const { return left() <= 0 || sum_ >= limit_.seconds; }
  /// Makes the next steps, at most kTurn, and returns the median of their times.
  double take_turn() {
    const auto turn = std::ptrdiff_t(std::min(kTurn, left()));
    for (std::ptrdiff_t i = 0; i < turn; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      step_();
      const auto ended = std::chrono::steady_clock::now();
      times_.push_back(std::chrono::duration<double>(ended - begun).count());
      sum_ += times_.back();
    }
    return median({times_.end() - turn, times_.end()});
  }
  const Seconds& times() const { return times_; }

 private:
  std::int64_t left() const { return limit_.steps - std::int64_t(times_.size()); }

  const Limit limit_;
  const std::function<void()> step_;
  Seconds times_;
  double sum_ = 0;
};

TimedSteps own_steps(Session& session, const Graph& graph, const FetchGraph& fetch,
                     const Limit& limit) {
  // X and the local W are filled once, and keep these values.
  session.evaluate_in_place(graph, {&fetch.own, 1},
                            [&](Feed& feed) { feed.normal(fetch.x).normal(fetch.own_w); });
  return {limit, [&] { session.evaluate_in_place(graph, {&fetch.own, 1}, nullptr); }};
}

// Times the local steps alone, since one process fetches nothing.
void measure_alone(Session& session, const Graph& graph, const FetchShape& shape,
                   const FetchGraph& fetch, const Limit& limit) {
  TimedSteps own = own_steps(session, graph, fetch, limit);
  while (!own.ended()) own.take_turn();
  session.print(fmt::format("Local GEMM Time: {:.7f}", mean(own.times())));
  const std::string section = shape.section();
  session.report(section, "local_us", median_us(own.times()));
  session.report(section, "remote_us", std::nullopt);
  session.report(section, "added_us", std::nullopt);
  session.report(section, "remote_mean_us", std::nullopt);
}

void measure(Session& session, const Graph& graph, const FetchShape& shape, const FetchGraph& fetch,
             const Limit& limit) {
  TimedSteps own = own_steps(session, graph, fetch, limit);
  TimedSteps remote(limit, [&] { session.fetch(graph, {&fetch.remote, 1}, nullptr); });
  Seconds added;
  while (!own.ended() && !remote.ended()) {
    const double local = own.take_turn();
    added.push_back(remote.take_turn() - local);
  }
  session.print(fmt::format("Local GEMM Time: {:.7f}  Network Fetch GEMM Time: {:.7f}",
                            mean(own.times()), mean(remote.times())));
  const std::string section = shape.section();
  session.report(section, "local_us", median_us(own.times()));
  session.report(section, "remote_us", median_us(remote.times()));
  session.report(section, "added_us", median_us(std::move(added)));
  session.report(section, "remote_mean_us", mean(remote.times()) * 1e6);
}

// Returns the help text of a flag that sets part of a shape.
std::string help_of_shape(const char* what) {
  return fmt::format("The number of {}; with this flag, one shape only", what);
}

/// The settings of fetch.
struct FetchSettings {
  Setting<std::int64_t> features = {.name = "features",
                                    .value = 128,
                                    .help = help_of_shape("rows of the variable"),
                                    .least = 1,
                                    .flag = true,
                                    .placeholder = "F"};
  Setting<std::int64_t> batch = {.name = "batch",
                                 .value = 32,
                                 .help = help_of_shape("examples in a step"),
                                 .least = 1,
                                 .flag = true,
                                 .placeholder = "B"};
  Setting<std::int64_t> hidden = {.name = "hidden",
                                  .value = 256,
                                  .help = help_of_shape("columns of the variable"),
                                  .least = 1,
                                  .flag = true,
                                  .placeholder = "H"};
  Setting<bool> constant = {.name = "constant",
                            .value = false,
                            .help = "Do not change the variable on the parameter server",
                            .flag = true};
  Setting<std::int64_t> steps = {.name = "steps",
                                 .value = 2000,
                                 .help = "Time so many local and so many fetched steps per shape",
                                 .least = 1,
                                 .flag = true};
  Setting<double> seconds = {
      .name = "seconds",
      .value = kForever,
      .help = "Time local and fetched steps for so many seconds each, per shape, instead",
      .least = 1e-3,
      .flag = true,
      .placeholder = "S",
      .default_text = "no limit"};

  std::vector<AnySetting> all() const {
    return {features, batch, hidden, constant, steps, seconds};
  }
};

Limit limit_of(const Settings& settings) {
  const FetchSettings own;
  const bool by_time = settings.given(own.seconds) && !settings.given(own.steps);
  return {.steps = by_time ? INT64_MAX : settings[own.steps], .seconds = settings[own.seconds]};
}

// Adds a small number to all values when `time` is even, and subtracts the number when `time` is
// odd. The number is too small to matter in a result, and large enough to change every value near
// 1.
void change_all(std::int64_t time, std::span<float> values) {
  constexpr float kStep = 0x1p-20f;
  const float change = time % 2 == 0 ? kStep : -kStep;
  constexpr std::size_t kBlock = 16;  // compilers make vector code of a loop of fixed length
  while (values.size() >= kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) values[i] += change;
    values = values.subspan(kBlock);
  }
  for (float& value : values) value += change;
}

}  // namespace

std::string FetchShape::str() const { return fmt::format("{},{},{}", features, batch, hidden); }

std::string FetchShape::section() const { return "fetch/" + str(); }

std::vector<FetchShape> fetch_shapes(const Settings& settings) {
  const FetchSettings own;
  if (!settings.given(own.features) && !settings.given(own.batch) && !settings.given(own.hidden)) {
    return {{128, 32, 256}, {256, 128, 128}, {256, 128, 64}};
  }
  return {{settings[own.features], settings[own.batch], settings[own.hidden]}};
}

FetchGraph build_fetch(Graph& graph, const FetchShape& shape) {
  const auto scope = graph.scope(shape.str());
  const Shape w{shape.features, shape.hidden};
  FetchGraph fetch;
  fetch.x = graph.local("x", {shape.batch, shape.features});
  fetch.remote_w = graph.variable("w", w, Initializer::normal(0, 1));
  fetch.own_w = graph.local("own_w", w);
  fetch.remote = graph.named("remote", matmul(fetch.x, fetch.remote_w));
  fetch.own = graph.named("own", matmul(fetch.x, fetch.own_w));
  return fetch;
}

namespace {

class FetchModel : public Model {
 public:
  FetchModel()
      : Model({.name = "fetch",
               .summary = "the cost of reading one small variable from a ps in each step",
               .settings = FetchSettings{}.all()}) {}

  void check(const Cluster& cluster, const RunOptions&, const Settings& settings) const override {
    if (cluster.existing_servers && !settings[FetchSettings{}.constant]) {
      throw Error(ErrorCode::kUsage,
                  "fetch needs --constant with --existing-servers: they leave the variable as it "
                  "is; only the program's own ps tasks change it after each fetch");
    }
  }

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    Graph graph;
    const std::vector<FetchShape> shapes = fetch_shapes(settings);
    std::vector<FetchGraph> parts;
    parts.reserve(shapes.size());
    SessionOptions session_options;
    session_options.model = "fetch";
    session_options.examples_per_step = 1;
    session_options.unit = "steps";
    for (const FetchShape& shape : shapes) parts.push_back(build_fetch(graph, shape));
    RunOptions endless = run;  // the steps of fetch are not global steps
    endless.steps.reset();
    endless.seconds.reset();
    Session session(graph, cluster, endless, session_options);
    const bool alone = !cluster.distributed();
    if (alone) {
      session.print(
          "without a ps nothing is fetched; --ps 1 --workers 1 measures what fetching adds");
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto part = alone ? measure_alone : measure;
      part(session, graph, shapes[i], parts[i], limit_of(settings));
    }
  }

  AfterReads after_reads(const Settings& settings) const override {
    AfterReads changes;
    if (settings[FetchSettings{}.constant]) return changes;
    for (const FetchShape& shape : fetch_shapes(settings)) {
      Graph graph;
      changes[build_fetch(graph, shape).remote_w.name()] = change_all;
    }
    return changes;
  }

  std::vector<StepGraph> step_graphs(const Settings& settings) const override {
    std::vector<StepGraph> steps;
    for (const FetchShape& shape : fetch_shapes(settings)) {
      auto graph = std::make_unique<Graph>();
      const FetchGraph fetch = build_fetch(*graph, shape);
      steps.push_back({shape.section(), std::move(graph), {}, {fetch.remote}});
    }
    return steps;
  }
};

}  // namespace

const Model& fetch_model() {
  static const FetchModel model;
  return model;
}

}  // namespace paceline::models
