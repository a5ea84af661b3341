#include "tools/predicted_model.h"

#include <fmt/format.h>

#include "bench/step_work.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "exec/plan.h"
#include "predict/shape_predictor.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

constexpr const char* kExamples = R"(Examples:
  {0}
      on this machine: every strategy, 1 to all workers
  {0} --ps 1 --workers 4 --device sim --sim-step-ms 5.6
      with four devices that take 5.6 ms a step
  {0} --hosts hosts.toml --plot speed.svg
      on other hosts, as docs/predictions.md describes them
  {0} --ps 1 --workers 4 --lab-gbps 1 --lab-hosts 5
      on hosts with links of 1 Gbit/s

The speed of training is predicted, not how fast the loss falls (docs/strategies.md).)";

double bytes_of_values(const PlanRequest& request) {
  double bytes = 0;
  for (const VariableSpec& spec : variable_specs({&request.graph, 1}, request.training)) {
    bytes += double(byte_count(spec.dtype, spec.shape));
  }
  return bytes;
}

}  // namespace

bool is_of_predictions(const Flag& flag) {
  return flag.name != "--dry-run" && flag.name != "--predict" && flag.group != kOutputFlags;
}

CommandLine predict_line(const models::Model& model) {
  CommandLine line = train_flags(model);
  line.name = fmt::format("paceline predict {}", model.name());
  line.about = "Predicts how fast each way to distribute would be, and what limits it.";
  line.examples = fmt::format(kExamples, line.name);
  std::erase_if(line.flags, [](const Flag& flag) { return !is_of_predictions(flag); });
  line.flags.push_back({"--predict", "", "", ""});
  return line;
}

namespace {

std::optional<TrainJob> read_job(const models::Model& model, const Arguments& flags) {
  const CommandLine line = predict_line(model);
  Arguments words = {"--predict"};
  words.insert(words.end(), flags.begin(), flags.end());
  const std::optional<FlagValues> values = parse_job(line, words, own_environment);
  if (!values) return std::nullopt;
  return read_train_job(model, line, *values);
}

}  // namespace

bool can_be_predicted(const models::Model& model, const Arguments& flags) {
  return read_job(model, flags).has_value();
}

std::optional<PredictedModel> predict_model(const models::Model& model, const Arguments& flags) {
  const std::optional<TrainJob> read = read_job(model, flags);
  if (!read) return std::nullopt;
  const TrainJob& job = *read;
  const std::vector<models::StepGraph> graphs = model.step_graphs(job.settings);
  const PredictedStep step{std::string(model.name()), bench::request_of(graphs.front())};
  return PredictedModel{bytes_of_values(step.request),
                        predict_shapes(step, job.cluster, job.observers.prediction)};
}

}  // namespace paceline
