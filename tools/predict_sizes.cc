#include "tools/predict_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/printed.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"
#include "predict/growing_table.h"
#include "predict/prediction_text.h"
#include "predict/shapes_to_try.h"
#include "tools/say.h"

namespace paceline {
namespace {

constexpr const char* kSizes = "Sizes only, of any system's model";
double positive(const FlagValues& values, const char* flag, double otherwise) {
  return values.positive_number(flag).value_or(otherwise);
}

/// The end of a number, which says what it measures.
struct Unit {
  std::string_view name;
  double scale;
  bool is_rate;
};
constexpr Unit kUnits[] = {{"kB/s", 1e3, true},     {"MB/s", 1e6, true}, {"GB/s", 1e9, true},
                           {"s", 1, false},         {"ms", 1e-3, false}, {"us", 1e-6, false},
                           {"\u00b5s", 1e-6, false}};
constexpr double kLeastRate = 1e3, kMostRate = 1e12;  // bytes/s
constexpr double kLeastTime = 1e-8, kMostTime = 10;   // seconds

[[noreturn]] void refuse_transport(const std::string& text) {
  refuse_flag("--transport", text,
              "must be the rate of a stream (kB/s, MB/s or GB/s; from 1kB/s to 1000GB/s), the time "
              "of a message (s, ms, us or \u00b5s; from 0.01us to 10s), or both, such as "
              "332MB/s,350us");
}

// Reads "332MB/s" or "350us", a part of `text`.
void read_transport_part(std::string_view part, const std::string& text, SizedJob& job) {
  double number = 0;
  const char* const end = part.data() + part.size();
  const auto [stop, status] = std::from_chars(part.data(), end, number);
  const auto* const unit = std::ranges::find(kUnits, std::string_view(stop, end), &Unit::name);
  if (status != std::errc() || unit == std::end(kUnits)) refuse_transport(text);
  const double value = number * unit->scale;
  const bool possible = unit->is_rate ? value >= kLeastRate && value <= kMostRate
                                      : value >= kLeastTime && value <= kMostTime;
  double& part_of_job = unit->is_rate ? job.stream_bytes_per_s : job.message_s;
  if (!possible || part_of_job > 0) refuse_transport(text);
  part_of_job = value;
}

// Reads "332MB/s,350us": the rate of a stream and the time of a message.
void read_transport(const std::string& text, SizedJob& job) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    read_transport_part(std::string_view(text).substr(at, end - at), text, job);
    at = end + 1;
  }
}

void read_strategy(const FlagValues& values, SizedJob& job) {
  std::vector<std::string> names;
  for (const StrategyKind* const kind : strategies()) {
    const bool known = std::ranges::find(names, kind->name) != names.end();
    // Nothing is known of the tensors that would split them.
    if (!known && !kind->splits_variables()) names.emplace_back(kind->name);
  }
  const std::string text = values.text("--strategy");
  const std::string given =
      is_old_strategy_name(text) ? text : values.choice("--strategy", names).value_or("");
  job.ps = int(values.whole_number("--ps", 0, 1000).value_or(is_without_ps(given) ? 0 : 1));
  const ClusterKind cluster = job.ps > 0 ? ClusterKind::kWithPs : ClusterKind::kWorkersOnly;
  job.strategy.name = given;
  const StrategyKind& kind = strategy_kind(job.strategy, cluster);
  job.strategy.name = kind.name;
  if (kind.cluster == cluster) return;
  refuse_flag("--strategy", given,
              job.ps > 0 ? "has no parameter servers: give --ps 0"
                         : "needs a parameter server: give --ps 1 instead of --ps 0");
}

}  // namespace

std::vector<Flag> sized_flags() {
  return {
      {"--parameters", "N", "Numbers that are trained, such as 18.9e6; no MODEL is given", kSizes},
      {"--step-ms", "MS", "The time of a step on one device", kSizes},
      {"--tensors", "T", "The number of tensors that they are spread over (default 10)", kSizes},
      {"--workers", "N", "Workers, each with a device (default 1)", kSizes},
      {"--ps", "M", "Parameter servers; 0: all-reduce (default 1; of --strategy allreduce 0)",
       kSizes},
      {"--strategy", "S", "async, ssp, sync, allreduce or local_sgd (default async)", kSizes},
      {"--local-steps", "H", "Steps between two exchanges of --strategy local_sgd (default 20)",
       kSizes},
      {"--gbps", "R",
       "The rate of each host's link in Gbit/s; every task has a host of its own (default: all "
       "tasks "
       "are on one host)",
       kSizes},
      {"--transport", "RATE,TIME",
       "The transport of the other system: the rate of a stream and the time of a message, "
       "such as 332MB/s,350us, or one of them (default: Paceline's own)",
       kSizes},
      {"--input-rate", "E", "Examples a second that the input gives (default: no limit)", kSizes},
      {"--examples", "B", "Examples of a step (default 1)", kSizes},
      {"--time-limit", "S", "Predict no more ways after so many seconds (default 30)", kSizes},
  };
}

SizedJob read_sized_job(const FlagValues& values) {
  constexpr double kMostParameters = 1e10;
  SizedJob job{.parameters = values.positive_number("--parameters", kMostParameters).value_or(0),
               .step_ms = positive(values, "--step-ms", 0)};
  if (job.step_ms == 0) {
    throw Error(ErrorCode::kUsage, "--step-ms is missing: the time of a step on one device");
  }
  job.tensors = int(values.whole_number("--tensors", 1, 100'000).value_or(10));
  job.workers = int(values.whole_number("--workers", 1, 1000).value_or(1));
  read_strategy(values, job);
  job.strategy.local_steps = int(values.whole_number("--local-steps", 1, 1'000'000).value_or(20));
  job.gbps = positive(values, "--gbps", 0);
  job.examples = positive(values, "--examples", 1);
  job.input_per_s = positive(values, "--input-rate", 0);
  if (values.given("--transport")) read_transport(values.text("--transport"), job);
  return job;
}

ShapesAsked read_sized_shapes(const FlagValues& values, const SizedJob& job) {
  ShapesAsked asked;
  asked.workers = job.workers;
  asked.most_workers = job.workers;
  asked.links = job.gbps > 0;
  asked.strategy = job.strategy;
  if (!values.given("--strategy")) asked.strategy.name.clear();
  if (values.given("--ps")) asked.ps = job.ps;
  return asked;
}

void print_sized(const SizedJob& job, const ShapesAsked& asked, double limit_s) {
  const JobShape shape = shape_of(job);
  const PredictedJob with_paceline = predicted_job_of(job, true);
  const Prediction alone = predict_alone(with_paceline);
  std::string text = fmt::format("One process: {} steps/s\n", rounded(alone.steps_per_s));
  if (job.has_transport()) {
    text += fmt::format("{} with that transport: {}\n", shape.text(),
                        prediction_line(predict(predicted_job_of(job, false), shape)));
  }
  const Prediction own = predict(with_paceline, shape, alone);
  say(text + fmt::format("{} with Paceline: {}\n\n", shape.text(), prediction_line(own)));
  std::vector<JobShape> shapes = shapes_to_try(asked);
  for (JobShape& each : shapes) {
    if (each.workers == 1 && each.ps == 0) continue;
    SizedJob other = job;
    other.ps = each.ps;
    const JobShape placed = shape_of(other);
    each.ps_hosts = placed.ps_hosts;
    each.worker_hosts = placed.worker_hosts;
  }
  SizedJob most = job;
  most.ps = std::max(job.ps, 4);
  const std::string note =
      convergence_note(print_predictions(predicted_job_of(most, true), shapes, limit_s));
  if (!note.empty()) say("\n" + note + "\n");
}

}  // namespace paceline
