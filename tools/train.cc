#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "bench/bound.h"
#include "cluster/flags/cluster_reader.h"
#include "cluster/flags/flags.h"
#include "cluster/flags/job_flags.h"
#include "cluster/flags/run_options_reader.h"
#include "cluster/task_program.h"
#include "models/model.h"
#include "paceline/error.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"
#include "train/dry_run.h"

namespace paceline {
namespace {

using models::Model;
using models::ModelOptions;

const char* const kModel = "Model";

// Every flag that some model takes; a model is offered the ones it names.
const Flag kModelFlags[] = {
    {"--batch", "B", "The number of examples in a step of one worker", kModel},
    {"--epochs", "N", "End after so many passes of each worker over its part of the data", kModel},
    {"--data", "DIR", "The folder with the data", kModel},
    {"--size", "small|medium|large|test", "The size of the model, as published (default small)",
     kModel},
    {"--hidden", "H", "The width of the hidden layers", kModel},
    {"--features", "F", "The number of rows of the variable", kModel},
    {"--constant", "", "Do not change the variable on the parameter server", kModel},
};

// What run flags say for a model whose timed steps are not global ones.
const Flag kTimingFlags[] = {
    {"--steps", "N", "Time so many local and so many fetched steps per shape (default 2000)",
     kModel},
    {"--seconds", "S", "Time local and fetched steps for so long each, per shape, instead", kModel},
};

bool takes(const Model& model, const Flag& flag) {
  return std::ranges::find(model.flags(), std::string_view(flag.name).substr(2)) !=
         model.flags().end();
}

std::map<std::string, std::string> read_settings(const FlagValues& values) {
  std::map<std::string, std::string> settings;
  for (const std::string& text : values.all("--set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      refuse_flag("--set", text, "must be name=value");
    }
    settings[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return settings;
}

bool has(const CommandLine& line, const Flag& flag) {
  return std::ranges::find(line.flags, flag.name, &Flag::name) != line.flags.end();
}

}  // namespace

std::string hyper_parameters_text(const Model& model) {
  std::string text = "Hyper-parameters (--set name=value):\n";
  for (const models::HyperParameter& parameter : model.hyper_parameters()) {
    text += fmt::format("  {:<32}{} (default {})\n", parameter.name, parameter.help,
                        parameter.default_text);
  }
  return text;
}

CommandLine train_flags(const Model& model) {
  CommandLine line;
  line.name = fmt::format("paceline train {}", model.name());
  line.about = std::string(model.summary());
  for (Flag flag : kModelFlags) {
    if (!takes(model, flag)) flag.group.clear();  // known, so that it can be refused with a reason
    line.flags.push_back(flag);
  }
  for (const Flag& flag : kTimingFlags) {
    if (takes(model, flag)) line.flags.push_back(flag);
  }
  line.flags.push_back(
      {"--set", "NAME=VALUE", "Change a hyper-parameter (listed below)", kModel, true});
  for (const auto& flags : {run_flags(), cluster_flags()}) {
    std::ranges::copy_if(flags, std::back_inserter(line.flags),
                         [&](const Flag& flag) { return !has(line, flag); });
  }
  line.examples = hyper_parameters_text(model) + "\n" + cluster_examples(line.name);
  return line;
}

namespace {

ModelOptions read_model_options(const FlagValues& values) {
  ModelOptions options;
  options.batch = values.whole_number("--batch", 1, INT32_MAX);
  options.epochs = values.whole_number("--epochs", 1, INT32_MAX);
  options.data = values.text("--data");
  options.size =
      values.choice("--size", {"small", "medium", "large", "test"}).value_or(options.size);
  options.hidden = values.whole_number("--hidden", 1, INT32_MAX);
  options.features = values.whole_number("--features", 1, INT32_MAX);
  options.constant = values.given("--constant");
  options.set = read_settings(values);
  return options;
}

std::string models_that_take(const Flag& flag) {
  std::string names;
  for (const Model* model : models::all_models()) {
    if (!takes(*model, flag)) continue;
    names += (names.empty() ? "" : ", ") + std::string(model->name());
  }
  return names;
}

void check_taken(const Model& model, const CommandLine& line, const FlagValues& values) {
  for (const Flag& flag : kModelFlags) {
    if (takes(model, flag) || !values.given(flag.name)) continue;
    if (flag.name == "--epochs") {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--epochs has no meaning for {}, whose data has no end; use --steps "
                              "or --seconds",
                              model.name()));
    }
    throw Error(ErrorCode::kUsage,
                fmt::format("{} is not a flag of {}, only of {} (see {} --help)", flag.name,
                            model.name(), models_that_take(flag), line.name));
  }
}

void check_end(const FlagValues& values) {
  for (const char* other : {"--steps", "--seconds"}) {
    if (values.given("--epochs") && values.given(other)) {
      throw Error(ErrorCode::kUsage, fmt::format("--epochs and {} cannot both be given: each says "
                                                 "when the run ends",
                                                 other));
    }
  }
}

std::string models_text() {
  std::string text;
  for (const Model* model : models::all_models()) {
    text += fmt::format("  {:<10}{}\n", model->name(), model->summary());
  }
  return text;
}

Program program_of(const Model& model, const TrainJob& job) {
  Program program;
  program.cluster = job.cluster;
  program.run = job.run;
  program.model = model.name();
  program.after_reads = model.after_reads(job.options);
  program.work = [&model, options = job.options](const Cluster& cluster, const RunOptions& run) {
    model.run(cluster, run, options);
  };
  return program;
}

// Of all graphs that it times, without its data.
std::string dry_run_of(const Model& model, const TrainJob& job) {
  const std::vector<models::StepGraph> graphs = model.step_graphs(job.options);
  std::vector<DryStep> steps;
  steps.reserve(graphs.size());
  for (const models::StepGraph& graph : graphs) {
    steps.push_back({graph.section, bench::request_of(graph)});
  }
  return dry_run_text(model.name(), steps, job.cluster, job.run);
}

int train(const Model& model, const Arguments& arguments) {
  const CommandLine line = train_flags(model);
  const std::optional<FlagValues> values =
      parse_job(line, {arguments.begin() + 1, arguments.end()}, std::getenv("TF_CONFIG"));
  if (!values) return 0;
  const TrainJob job = read_train_job(model, line, *values);
  if (job.run.dry_run) {
    fmt::print("{}", dry_run_of(model, job));
    return 0;
  }
  Program program = program_of(model, job);
  program.arguments = {"train"};
  program.arguments.insert(program.arguments.end(), arguments.begin(), arguments.end());
  return run_role(program);
}

}  // namespace

TrainJob read_train_job(const Model& model, const CommandLine& line, const FlagValues& values) {
  return values.with_places([&] {
    check_taken(model, line, values);
    check_end(values);
    TrainJob job{read_cluster(values), read_run_options(values), read_model_options(values)};
    model.check(job.cluster, job.run, job.options);
    return job;
  });
}

std::vector<CommandLine> train_lines() {
  std::vector<CommandLine> lines;
  for (const Model* model : models::all_models()) lines.push_back(train_flags(*model));
  return lines;
}

int train_command(const Arguments& arguments) {
  const std::string usage = "paceline train MODEL …, where MODEL is one of\n" + models_text() +
                            "paceline train MODEL --help lists the flags of a model.\n";
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "which model? " + usage);
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("Usage: {}", usage);
    return 0;
  }
  if (arguments.front().starts_with('-')) {
    throw Error(ErrorCode::kUsage, "the model comes before the flags: " + usage);
  }
  return train(models::find_model(arguments.front()), arguments);
}

}  // namespace paceline
