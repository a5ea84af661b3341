#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/nearest.h"
#include "bench/step_work.h"
#include "cli/automatic_shape.h"
#include "cli/dry_run.h"
#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/run_options_reader.h"
#include "cli/flags/settings_reader.h"
#include "cli/joined_job.h"
#include "cli/task_program.h"
#include "models/model.h"
#include "paceline/error.h"
#include "predict/shape_predictor.h"
#include "run/program_run.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

using models::Model;

// Adds the flags of other models, which --help does not show, so that they can be refused with a
// reason.
void add_flags_of_others(CommandLine& line) {
  for (const Model* model : models::all_models()) {
    for (Flag flag : own_flags(model->settings().declared())) {
      if (std::ranges::find(line.flags, flag.name, &Flag::name) != line.flags.end()) continue;
      flag.group.clear();
      line.flags.push_back(flag);
    }
  }
}

bool takes(const Model& model, const Flag& flag) {
  const std::vector<Flag> own = own_flags(model.settings().declared());
  return std::ranges::find(own, flag.name, &Flag::name) != own.end();
}

std::string models_that_take(const Flag& flag) {
  std::string names;
  for (const Model* model : models::all_models()) {
    if (!takes(*model, flag)) continue;
    names += (names.empty() ? "" : ", ") + std::string(model->name());
  }
  return names;
}

}  // namespace

CommandLine train_flags(const Model& model) {
  CommandLine line;
  line.name = fmt::format("paceline train {}", model.name());
  line.about = std::string(model.summary());
  line.examples = cluster_examples(line.name);
  for (const auto& flags : {run_flags(), cluster_flags()}) {
    line.flags.insert(line.flags.end(), flags.begin(), flags.end());
  }
  line = with_settings(std::move(line), model.settings().declared());
  add_flags_of_others(line);
  return line;
}

namespace {

void check_taken(const Model& model, const CommandLine& line, const FlagValues& values) {
  for (const Flag& flag : line.flags) {
    if (!flag.group.empty() || !values.given(flag.name) || models_that_take(flag).empty()) continue;
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

void check_keep_best(const Model& model, const RunOptions& run) {
  if (!run.keep_best) return;
  const std::vector<std::string> numbers = model.numbers();
  if (std::ranges::find(numbers, run.keep_best->name) != numbers.end()) return;
  if (numbers.empty()) {
    refuse_flag("--keep-best", run.keep_best->name,
                fmt::format("{} evaluates nothing by which checkpoints could be compared: leave "
                            "the flag out",
                            model.name()));
  }
  refuse_flag("--keep-best", run.keep_best->name,
              fmt::format("{} gives no such number, but {}{}", model.name(),
                          fmt::join(numbers, ", "), did_you_mean(run.keep_best->name, numbers)));
}

std::string models_text() {
  std::string text;
  for (const Model* model : models::all_models()) {
    text += fmt::format("  {:<10}{}\n", model->name(), model->summary());
  }
  return text;
}

Program program_run_of(const Model& model, const TrainJob& job) {
  Program program;
  program.cluster = job.cluster;
  program.run = job.run;
  program.observers = job.observers;
  program.model = model.name();
  program.lab = job.lab;
  program.after_reads = model.after_reads(job.settings);
  if (model.can_evaluate()) {
    program.evaluate = [&model, settings = job.settings](const RunOptions& run) {
      return model.evaluate(run, settings);
    };
  }
  program.work = [&model, settings = job.settings](const Cluster& cluster, const RunOptions& run) {
    model.run(cluster, run, settings);
  };
  return program;
}

// Describes the graphs of all steps that the model times. Does not need the model's data.
std::string dry_run_of(const Model& model, const TrainJob& job) {
  const std::vector<models::StepGraph> graphs = model.step_graphs(job.settings);
  std::vector<DryStep> steps;
  steps.reserve(graphs.size());
  for (const models::StepGraph& graph : graphs) {
    steps.push_back({graph.section, bench::request_of(graph)});
  }
  return dry_run_text(model.name(), steps, job.cluster, job.run);
}

std::vector<Prediction> predictions_of(const Model& model, const TrainJob& job) {
  const std::vector<models::StepGraph> graphs = model.step_graphs(job.settings);
  return compare_shapes({std::string(model.name()), bench::request_of(graphs.front())}, job.cluster,
                        job.observers.prediction);
}

int train(const Model& model, const Arguments& arguments) {
  const CommandLine line = train_flags(model);
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  std::optional<FlagValues> values = parse_job(line, words, own_environment);
  if (!values) return 0;
  const std::unique_ptr<JoinedJob> joined = join_job(*values);
  check_one_of_several(*values, own_environment);
  TrainJob job = read_train_job(model, line, *values);
  if (job.observers.prediction.asked) {
    const std::vector<models::StepGraph> graphs = model.step_graphs(job.settings);
    predict_shapes({std::string(model.name()), bench::request_of(graphs.front())}, job.cluster,
                   job.observers.prediction);
    return 0;
  }
  if (leaves_shape_open(*values, job.cluster)) {
    const auto read = [&](const std::vector<std::string>& with) {
      job = read_train_job(model, line, *parse_job(line, with, nullptr));
    };
    words = with_fastest_shape(words, *values, predictions_of(model, job), read);
  }
  if (job.observers.dry_run) {
    fmt::print("{}", dry_run_of(model, job));
    return 0;
  }
  Program program = program_run_of(model, job);
  program.placed = placed_in_words(*values);
  program.key_hint = key_hint(*values);
  program.arguments = {"train", arguments.front()};
  program.arguments.insert(program.arguments.end(), words.begin(), words.end());
  return run_process(program);
}

}  // namespace

TrainJob read_train_job(const Model& model, const CommandLine& line, const FlagValues& values) {
  return values.with_places([&] {
    check_taken(model, line, values);
    TrainJob job{read_cluster(values), read_run_options(values), read_observer_options(values),
                 read_settings(model.settings().declared(), values)};
    job.lab = read_lab(values, job.cluster);
    set_places(job.lab, job.observers.prediction);
    own_program_run(job.run).flags = flags_and_settings(values, job.settings);
    job.run.settings = job.settings.all_given();
    check_keep_best(model, job.run);
    model.check(job.cluster, job.run, job.settings);
    return job;
  });
}

const Model& named_model(const std::string& name, const std::string& flag) {
  if (const Model* const model = models::find_model(name)) return *model;
  if (std::error_code unseen; std::filesystem::is_regular_file(name, unseen)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{0}' is no model, but a file: a program of your own is asked itself, "
                            "as in {1}{0}{2}",
                            name, name.find('/') == name.npos ? "./" : "", flag));
  }
  std::vector<std::string_view> names;
  names.reserve(models::all_models().size());
  for (const Model* model : models::all_models()) names.push_back(model->name());
  throw Error(ErrorCode::kUsage, fmt::format("unknown model '{}'{} ({})", name,
                                             did_you_mean(name, names), fmt::join(names, ", ")));
}

std::vector<CommandLine> train_lines() {
  std::vector<CommandLine> lines;
  for (const Model* model : models::all_models()) lines.push_back(train_flags(*model));
  return lines;
}

int train_command(const Arguments& arguments) {
  const std::string usage = "paceline train MODEL …, where MODEL is one of\n" + models_text() +
                            "paceline train MODEL --help lists the flags of a model.\n";
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "the model is missing: " + usage);
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("Usage: {}", usage);
    return 0;
  }
  if (arguments.front().starts_with('-')) {
    throw Error(ErrorCode::kUsage, "the model must stand before the flags: " + usage);
  }
  return train(named_model(arguments.front()), arguments);
}

}  // namespace paceline
