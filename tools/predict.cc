#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cores.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "checkpoint/input_file.h"
#include "cli/flags/cluster_reader.h"
#include "cli/flags/command_line.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/path_flags.h"
#include "cli/flags/run_options_reader.h"
#include "launch/launcher.h"
#include "launch/running_task.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"
#include "predict/growing_table.h"
#include "predict/hosts_file.h"
#include "predict/learner_study.h"
#include "predict/machine_facts.h"
#include "predict/predicted_command.h"
#include "predict/prediction_text.h"
#include "predict/shape_predictor.h"
#include "predict/shapes_to_try.h"
#include "predict/sized_job.h"
#include "run/network_rate.h"
#include "run/task_devices.h"
#include "tools/predicted_model.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

// Predicts a command that trains: the command makes some steps in one process, and then predicts.

/// Returns the flags of `paceline predict [FLAGS] -- COMMAND`.
CommandLine predicted_command_line();

/// Runs the command after "--" and waits for it. $PACELINE_PREDICT makes the command print the
/// table of ways for these flags. Throws kUsage; kFailedPrecondition if the command ended without a
/// prediction; and kCancelled if the user has interrupted it.
void predict_command_of(const Arguments& arguments);

constexpr const char* kExample = "paceline predict --hosts hosts.toml -- python train.py";
constexpr int kInterruptedStatus = 130;

// Paths are resolved here, since the command may change to another folder.
Arguments words_of(const CommandLine& line, const FlagValues& values) {
  Arguments words;
  for (const auto& [name, value] : values.listed()) {
    if (values.is_open(name) || name == "--config" || name == "--json") continue;
    words.push_back(name);
    if (value.empty()) continue;
    const auto flag = std::ranges::find(line.flags, name, &Flag::name);
    words.push_back(names_path(flag->placeholder) ? std::filesystem::absolute(value).string()
                                                  : value);
  }
  return words;
}

// Returns the options with which the command is run. The command writes its ways to the file
// `ways`. A copy has as many threads as one of as many workers would have.
PredictedCommandOptions options_of(const Arguments& command, const CommandLine& line,
                                   const FlagValues& values, const TemporaryFolder& folder,
                                   const std::string& ways) {
  const std::string name = std::filesystem::path(folder.path()).filename();
  const Arguments asked = words_of(line, values);
  Arguments alone = asked;
  alone.insert(alone.end(), {"--json", ways});
  if (!values.given("--no-trial")) alone.insert(alone.end(), {"--copies-by", name});
  PredictedCommandOptions options{.command = command,
                                  .name = name,
                                  .predict = task_variable(alone),
                                  .predict_of_copy = {},
                                  .within = {},
                                  .say = {}};
  options.predict_of_copy = [=](int copy, int copies) {
    const int threads = values.given("--threads") ? std::atoi(values.text("--threads").c_str())
                                                  : threads_of_worker({}, usable_cores(), copies);
    return task_variable({"--predict", "--copy-gate", fmt::format("{}/{}", name, copy), "--threads",
                          std::to_string(threads)});
  };
  if (const auto seconds = values.positive_number("--time-limit")) {
    options.within = std::chrono::ceil<Duration>(std::chrono::duration<double>(*seconds));
  }
  options.say = [](const std::string& text) { print_text(stderr, text + "\n"); };
  return options;
}

[[noreturn]] void say_why_not(const ExitStatus& ended) {
  if (ended.signal == SIGINT || ended.code == kInterruptedStatus) {
    throw Error(ErrorCode::kCancelled, "interrupted: nothing is predicted");
  }
  throw Error(ErrorCode::kFailedPrecondition,
              ended.good() ? "nothing is predicted: the command has ended, and made no ten steps "
                             "with a store in one process (paceline.Store, paceline.torch, an "
                             "ExternalStore) and called no run_program"
                           : fmt::format("nothing is predicted: the command failed before it had "
                                         "made the ten steps of a prediction ({}); what it has "
                                         "printed says why",
                                         ended.str()));
}

CommandLine predicted_command_line() {
  CommandLine line;
  line.name = "paceline predict";
  line.about =
      "paceline predict [FLAGS] -- COMMAND\n\n"
      "Predicts how fast each way to distribute a command's training would be, and what limits it. "
      "The command is any that trains with a store (paceline.Store, paceline.torch, an "
      "ExternalStore) or with run_program. With a store it makes ten steps in one process, which "
      "leave nothing behind, and ends; from them the sizes of the variables, the order and the "
      "moments in which the model needs them and has their gradients, and the time of a step are "
      "known. Then as many copies of the command run at once as this machine would have workers, "
      "which shows how they slow each other; --no-trial leaves this out, and --time-limit limits "
      "it, too. The flags here are those of paceline predict MODEL, and count in place of the "
      "command's own; the command's own strategy does not count.";
  line.examples = R"(Examples:
  paceline predict -- python train.py
      on this machine: every strategy, 1 to all workers
  paceline predict --hosts hosts.toml --json ways.json -- python train.py
      on other hosts, as docs/predictions.md describes them
  paceline predict --ps 1 --workers 4 --lab-gbps 1 --lab-hosts 5 -- python train.py
      on hosts with links of 1 Gbit/s
  paceline predict --strategy sync --wire bfloat16 -- python train.py
      one strategy, with another wire

Exit status: 0 if the table was printed, 1 if not, 2 if used wrongly, 130 after Ctrl-C.)";
  for (const auto& flags : {run_flags(), cluster_flags()}) {
    std::ranges::copy_if(flags, std::back_inserter(line.flags), is_of_predictions);
  }
  line.flags.push_back({"--predict", "", "", ""});
  return line;
}

void predict_command_of(const Arguments& arguments) {
  const CommandLine line = predicted_command_line();
  Arguments words = {"--predict"};
  words.insert(words.end(), arguments.begin(), std::ranges::find(arguments, "--"));
  const std::optional<FlagValues> values = parse_job(line, words, nullptr);
  if (!values) return;
  const Arguments command = command_after(arguments, kExample);
  values->with_places([&] {
    read_lab(*values, read_cluster(*values));
    read_run_options(*values);
    const PredictionOptions prediction = read_observer_options(*values).prediction;
    if (!prediction.hosts.empty()) read_hosts(prediction.hosts);
    if (!prediction.roof.empty()) read_roof_file(prediction.roof);
  });
  const TemporaryFolder folder;
  const std::string ways = folder.path("ways.json");
  const ExitStatus ended = PredictedCommand(options_of(command, line, *values, folder, ways)).run();
  if (!std::filesystem::exists(ways)) say_why_not(ended);
  if (!values->given("--json")) return;
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  write_text_file("the prediction", values->text("--json"), read_text(ways, kMostBytes));
}

// Predicts a model of any system, of which only sizes are known.

std::vector<Flag> sized_flags();
/// Throws kUsage.
SizedJob read_sized_job(const FlagValues& values);

/// Returns what the flags fix about the ways that are compared.
ShapesAsked read_sized_shapes(const FlagValues& values, const SizedJob& job);

/// Prints the speed of the job's own way, and a table of the ways that were asked for. The search
/// for further ways takes `limit_s` seconds at most.
void print_sized(const SizedJob& job, const ShapesAsked& asked, double limit_s);

constexpr const char* kSizes = "Sizes only, of any system's model";
double positive(const FlagValues& values, const char* flag, double otherwise) {
  return values.positive_number(flag).value_or(otherwise);
}

/// The end of a number's text, which gives its unit.
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
    // Leaves out strategies that split variables, since the tensors are not known.
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

// Studies many learners with uneven speeds that sometimes fail, for each strategy.

std::vector<Flag> learner_flags();
/// Throws kUsage if a given flag would have no effect: a flag about learners without --learners, or
/// a flag beside --learners that does not concern many learners.
void check_learner_flags(const FlagValues& values);
/// Reads the study; the step and the link are those of the job. Throws kUsage.
LearnerStudy read_learner_study(const FlagValues& values, const SizedJob& job);

constexpr const char* kLearners = "Many learners";
constexpr std::int64_t kMostLearners = 1'000'000, kMostUneven = 50;

/// A flag about one job's way, and the reason why it has no meaning for many learners.
struct UnusedFlag {
  const char* flag;
  const char* why;
};
constexpr UnusedFlag kUnused[] = {
    {"--workers", "the learners are the workers"},
    {"--ps", "parameter servers are no limit of many learners"},
    {"--strategy", "many learners are compared by all strategies"},
    {"--transport", "many learners exchange over links alone, whose rate is --gbps R"},
    {"--tensors", "many learners exchange all parameters at once"},
    {"--input-rate", "many learners have all the input that they need"},
    {"--examples", "many learners are compared by their steps"},
    {"--time-limit", "many learners are compared by all strategies"},
};

void check_without_learners(const FlagValues& values) {
  for (const Flag& flag : learner_flags()) {
    if (values.given(flag.name)) {
      refuse_flag(flag.name, values.text(flag.name), "is about many learners: give --learners N");
    }
  }
}

std::vector<Flag> learner_flags() {
  return {
      {"--learners", "N", "The share of their time that N learners use, by strategy", kLearners},
      {"--uneven", "P", "The standard deviation of a step's time, in percent (default 5)",
       kLearners},
      {"--mtbf-hours", "H", "A learner's mean time between failures (default: none of them fails)",
       kLearners},
      {"--restart-s", "S", "The time after which one that failed is back (default 60)", kLearners},
      {"--notice-s", "S",
       "The time after which the others know that one is gone (default 5; a process that dies is "
       "noticed at once, a host that is cut off after 5 s)",
       kLearners},
  };
}

void check_learner_flags(const FlagValues& values) {
  if (!values.given("--learners")) return check_without_learners(values);
  for (const UnusedFlag& unused : kUnused) {
    check_apart(values, "--learners", unused.flag, unused.why);
  }
  for (const char* flag : {"--restart-s", "--notice-s"}) {
    check_together(values, flag, "--mtbf-hours", "without it no learner fails");
  }
}

LearnerStudy read_learner_study(const FlagValues& values, const SizedJob& job) {
  const LearnerStudy usual;
  LearnerStudy study{.step_s = job.step_ms * 1e-3, .local_steps = job.strategy.local_steps};
  study.learners = int(values.whole_number("--learners", 1, kMostLearners).value_or(1));
  study.uneven = double(values.whole_number("--uneven", 0, kMostUneven).value_or(5)) / 100;
  study.mtbf_s = values.positive_number("--mtbf-hours").value_or(0) * 3600;
  study.restart_s = values.positive_number("--restart-s").value_or(usual.restart_s);
  study.notice_s = values.positive_number("--notice-s").value_or(usual.notice_s);
  // Contributions go in one direction, and values in the other.
  if (job.gbps > 0 && job.parameters > 0) {
    study.exchange_s = job.parameters * sizeof(float) / (job.gbps * kPayloadOfGigabit) * 2;
  }
  return study;
}

const double kTimeLimit = PredictionOptions().time_limit_s;

std::vector<Flag> flags_of_sizes() {
  std::vector<Flag> flags = sized_flags();
  for (const Flag& flag : learner_flags()) flags.push_back(flag);
  return flags;
}

CommandLine sizes_line() {
  return {
      "paceline predict",
      "Predicts how fast each way to distribute a training would be, and what limits it, before "
      "anything is started.\n\n"
      "paceline predict MODEL [flags of paceline train MODEL]\n"
      "paceline predict [the same flags] -- COMMAND, such as python train.py\n"
      "paceline predict --parameters N --step-ms MS [--workers N] [--gbps R] …\n"
      "paceline predict --parameters N --step-ms MS --learners N [--mtbf-hours H] …\n\n"
      "paceline predict MODEL --help lists the flags for a model, paceline predict --help -- "
      "COMMAND "
      "those for a command.",
      R"(Examples:
  paceline predict mlp
  paceline predict resnet --device sim --sim-step-ms 333 --hosts hosts.toml
  paceline predict mlp --device cuda --roof gpu.toml
  paceline predict --hosts hosts.toml -- python train.py
  paceline predict --parameters 18.9e6 --step-ms 5.6 --workers 4 --gbps 1
  paceline predict --parameters 18.9e6 --step-ms 5.6 --workers 4 --transport 332MB/s,350us
  paceline predict --parameters 1e9 --step-ms 2000 --gbps 1 --learners 100000 --mtbf-hours 1000)",
      flags_of_sizes()};
}

std::string learners_answer(const FlagValues& values, const SizedJob& job) {
  const LearnerStudy study = read_learner_study(values, job);
  return learners_text(study, study_learners(study, [](const std::string& strategy) {
                         print_text(stderr, "simulating " + strategy + " …\n");
                       }));
}

}  // namespace

std::vector<CommandLine> predict_lines() {
  std::vector<CommandLine> lines = {sizes_line()};
  for (const models::Model* model : models::all_models()) lines.push_back(predict_line(*model));
  return lines;
}

int predict_command(const Arguments& arguments) {
  if (!arguments.empty() && !arguments.front().starts_with('-')) {
    predict_model(named_model(arguments.front(), " --predict"),
                  {arguments.begin() + 1, arguments.end()});
    return 0;
  }
  if (std::ranges::find(arguments, "--") != arguments.end()) {
    predict_command_of(arguments);
    return 0;
  }
  const std::optional<FlagValues> values = parse(sizes_line(), arguments);
  if (!values) return 0;
  check_learner_flags(*values);
  if (!values->given("--parameters") && !values->given("--learners")) {
    throw Error(ErrorCode::kUsage,
                "the model is missing: paceline predict MODEL …, -- COMMAND, or --parameters N "
                "--step-ms MS");
  }
  const SizedJob job = read_sized_job(*values);
  if (values->given("--learners")) {
    say(learners_answer(*values, job));
  } else {
    const double limit_s = values->positive_number("--time-limit").value_or(kTimeLimit);
    print_sized(job, read_sized_shapes(*values, job), limit_s);
  }
  return 0;
}

}  // namespace paceline
