// `paceline explain`: says, from its report, what held a finished run back.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/printed.h"
#include "base/text_file.h"
#include "bench/step_work.h"
#include "cli/flags/command_line.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "explain/explain.h"
#include "launch/lab/lab_options.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"
#include "predict/hosts_file.h"
#include "predict/prediction_text.h"
#include "predict/shape_predictor.h"
#include "run/report/report.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

// The speed that a run would have had if it had been distributed in another way.

/// `changes` has some of "ps=2,gbps=10,workers=8,wire=bfloat16,strategy=sync,accumulate=2". The
/// predictor says by how much they would change the speed, and the run's own speed is multiplied by
/// that. Throws kUsage for changes that are unknown or do not fit the run. Throws
/// kFailedPrecondition for a run that cannot be predicted: of a user's own program, or of tasks
/// that were started one by one.
std::string what_if(const Report& run, const std::string& changes);

/// Flags by their names; settings without dashes.
using Flags = std::map<std::string, std::string>;

struct Change {
  std::string_view name, flag;
};
constexpr Change kChanges[] = {{"ps", "--ps"},
                               {"workers", "--workers"},
                               {"wire", "--wire"},
                               {"strategy", "--strategy"},
                               {"accumulate", "--accumulate"},
                               {"local-steps", "--local-steps"},
                               {"gbps", "--lab-gbps"},
                               {"batch", "batch"}};

std::string names_of_changes() {
  std::vector<std::string_view> names;
  for (const Change& change : kChanges) names.push_back(change.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_predictable(const Report& run) {
  const std::string_view flag = run.flag_of_other_commands();
  if (flag.empty()) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("--what-if needs a run whose tasks were all started by one command, and "
                          "this one had {}",
                          flag));
}

// Leaves out settings that have their default. The user did not give them, and together with a
// given setting they might be refused: resnet's depth, for example, also follows from its units.
Flags flags_of(const Report& run, const models::Model& model) {
  Flags flags(run.flags.begin(), run.flags.end());
  for (const auto& [name, value] : model.settings().listed()) {
    const auto found = flags.find(name);
    if (found != flags.end() && found->second == value) flags.erase(found);
  }
  return flags;
}

int number(const Flags& flags, const std::string& name, int otherwise) {
  const auto found = flags.find(name);
  if (found == flags.end()) return otherwise;
  int value = otherwise;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

int tasks_of(const Flags& flags) {
  return number(flags, "--ps", 0) + number(flags, "--workers", 0);
}

int lab_hosts(const Flags& run) {
  const auto place = run.find("--lab-place");
  return place == run.end() ? number(run, "--lab-hosts", 0) : parse_lab_place(place->second).hosts;
}

// Places tasks anew on the run's emulated hosts if their numbers differ from the run's. If each
// task had its own host, it still has.
void place_anew(Flags& flags, const Flags& run) {
  const int hosts = lab_hosts(run), tasks = tasks_of(flags);
  flags.erase("--lab-place");
  if (hosts > 0) flags["--lab-hosts"] = std::to_string(hosts >= tasks_of(run) ? tasks : hosts);
}

/// A change that the user gave, such as "ps=2".
struct GivenChange {
  const Change* change;
  std::string text, value;
};

void check_strategy(const std::string& text, const std::string& value) {
  const std::vector<std::string> names = strategy_names();
  if (std::ranges::find(names, value) != names.end() || is_old_strategy_name(value)) return;
  refuse_flag("--what-if", text,
              fmt::format("must name a strategy, one of {}{}", fmt::join(names, ", "),
                          did_you_mean(value, names)));
}

GivenChange change_named(const std::string& text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto* const change =
      std::ranges::find(kChanges, std::string_view(text).substr(0, equals), &Change::name);
  if (change == std::end(kChanges) || equals + 1 >= text.size()) {
    refuse_flag("--what-if", text,
                "must be a change such as ps=2; it can change " + names_of_changes());
  }
  GivenChange given{change, text, text.substr(equals + 1)};
  if (change->name == "strategy") check_strategy(text, given.value);
  return given;
}

std::vector<GivenChange> changes_in(const std::string& changes) {
  std::vector<GivenChange> all;
  for (std::size_t at = 0; at <= changes.size();) {
    const std::size_t end = std::min(changes.find(',', at), changes.size());
    if (end == at) {
      refuse_flag("--what-if", changes, "a change is missing before or after a comma");
    }
    all.push_back(change_named(changes.substr(at, end - at)));
    const auto first = std::ranges::find(all, all.back().change, &GivenChange::change);
    if (first + 1 != all.end()) {
      refuse_flag("--what-if", changes, fmt::format("{} is given twice", first->change->name));
    }
    at = end + 1;
  }
  return all;
}

Flags changed(const Flags& run, const std::string& changes) {
  Flags flags = run;
  for (const GivenChange& given : changes_in(changes)) {
    flags[std::string(given.change->flag)] = given.value;
  }
  if (lab_hosts(run) == 0 && flags.contains("--lab-gbps")) {
    refuse_flag("--what-if", changes, "this run was on one host, without a network");
  }
  if (number(flags, "--ps", 0) > 0 && !flags.contains("--workers")) flags["--workers"] = "1";
  const auto differs = [&](const char* of) { return number(flags, of, 0) != number(run, of, 0); };
  if (differs("--ps") || differs("--workers")) place_anew(flags, run);
  return flags;
}

// Returns these flags as words. Leaves out those that a prediction ignores: those of kOutputFlags,
// --resume and --config.
std::vector<std::string> words_of(const CommandLine& line, const Flags& flags) {
  std::vector<std::string> words;
  for (const auto& [name, value] : flags) {
    if (!name.starts_with("--")) {
      words.insert(words.end(), {"--set", fmt::format("{}={}", name, value)});
      continue;
    }
    const auto flag = std::ranges::find(line.flags, name, &Flag::name);
    if (flag == line.flags.end() || flag->group == kOutputFlags || name == "--resume" ||
        name == "--config") {
      continue;
    }
    words.push_back(name);
    if (!flag->placeholder.empty()) words.push_back(value);
  }
  return words;
}

// Returns the machine of the run. Reports of earlier versions do not describe it: then returns
// nothing, and this machine is measured.
std::optional<PredictedHost> machine_of(const Report& run) {
  if (!run.expected || run.expected->machine.empty()) return {};
  return host_of(run.expected->machine);
}

Prediction prediction_of(const models::Model& model, const Flags& flags,
                         const std::optional<PredictedHost>& machine) {
  const CommandLine line = train_flags(model);
  const std::optional<FlagValues> values = parse_job(line, words_of(line, flags), nullptr);
  const TrainJob job = read_train_job(model, line, *values);
  const std::vector<models::StepGraph> graphs = model.step_graphs(job.settings);
  const PredictedStep step{std::string(model.name()), bench::request_of(graphs.front())};
  const ShapePredictor predictor(step, job.cluster, job.observers.prediction, machine);
  return predict(predictor.job(), predictor.own_shape());
}

// Returns how an error about the value begins.
std::string beginning_of_refusal(const GivenChange& given) {
  const bool setting = !given.change->flag.starts_with("--");
  return fmt::format("{}{}{}: ", setting ? "--set " : "", given.change->flag,
                     (setting ? "=" : " ") + given.value);
}

// If a value is wrong, the error names the change that has it; any other error names all changes,
// since the user gave none of the flags.
Prediction prediction_of_changed(const models::Model& model, const Flags& run,
                                 const std::string& changes,
                                 const std::optional<PredictedHost>& machine) {
  const Flags flags = changed(run, changes);
  try {
    return prediction_of(model, flags, machine);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    const std::string_view message = error.what();
    for (const GivenChange& given : changes_in(changes)) {
      const std::string beginning = beginning_of_refusal(given);
      if (!message.starts_with(beginning)) continue;
      refuse_flag("--what-if", given.text, std::string(message.substr(beginning.size())));
    }
    refuse_flag("--what-if", changes, std::string(message));
  }
}

std::string what_if(const Report& run, const std::string& changes) {
  const models::Model* const model = models::find_model(run.model);
  if (model == nullptr) {
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("--what-if knows the models of paceline train, and not '{}': --predict "
                            "makes a program of one's own predict its speed",
                            run.model));
  }
  const Flags flags = flags_of(run, *model);
  check_predictable(run);
  const double measured = run.steps_per_s().value_or(0);
  const std::optional<PredictedHost> machine = machine_of(run);
  const Prediction was = prediction_of(*model, flags, machine),
                   would = prediction_of_changed(*model, flags, changes, machine);
  const double times = would.steps_per_s / was.steps_per_s;
  if (measured <= 0) {
    return fmt::format(
        "The run was too short to be timed. The predictor says {} steps/s for it, and {} with {} "
        "({} ×); then the limit would be: {}.\n",
        rounded(was.steps_per_s), rounded(would.steps_per_s), changes, times_of(times),
        would.limit);
  }
  return fmt::format(
      "With {}: {} → {} steps/s ({} ×); then the limit would be: {}.\n"
      "The predictor says {} steps/s for the run as it was, and {} for the other.\n",
      changes, rounded(measured), rounded(times * measured), times_of(times), would.limit,
      rounded(was.steps_per_s), rounded(would.steps_per_s));
}

CommandLine explain_flags() {
  return {
      "paceline explain",
      "Says what held a run back: one cause, one task, what to change, and what that would "
      "bring. RUN is the folder of a run (--out) or its report. docs/explain.md lists the "
      "causes.",
      R"(Examples:
  paceline explain out
  paceline explain report.json --json finding.json
  paceline explain out --what-if ps=2,gbps=10
      how fast the run would be with another ps, and other links)",
      {{"RUN", "PATH", "The folder of the run, or its report", "Run"},
       {"--json", "FILE", "Write the cause, the task and the gain to this JSON file, too", "Flags"},
       {"--what-if", "CHANGES",
        "Predict its speed with other ps=M, workers=N, wire=bfloat16, strategy=S, local-steps=H, "
        "accumulate=K, gbps=R or batch=B",
        "Flags"}}};
}

std::string json_of(const Finding& finding, const Report& report) {
  const double measured = report.steps_per_s().value_or(0);
  const nlohmann::ordered_json object = {{"cause", name_of(finding.cause)},
                                         {"task", finding.task},
                                         {"sentence", finding.sentence},
                                         {"advice", finding.advice},
                                         {"gain", finding.gain},
                                         {"steps_per_s", measured},
                                         {"error", report.error},
                                         {"speed", finding.speed > 0 ? finding.speed : measured},
                                         {"unit", finding.unit}};
  return object.dump(2) + "\n";
}

}  // namespace

std::vector<CommandLine> explain_lines() { return {explain_flags()}; }

int explain_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(explain_flags(), arguments);
  if (!values) return 0;
  check_apart(*values, "--what-if", "--json", "a prediction has no cause to write");
  if (values->given("--json")) check_new_file("--json", values->text("--json"));
  const std::string run = values->text("RUN");
  const Report report = read_report(run);
  if (values->given("--what-if")) {
    say(what_if(report, values->text("--what-if")));
    return 0;
  }
  const bool failed = !report.error.empty();
  if (failed) say(fmt::format("The run ended: {}\n", plain_text(report.error)));
  const std::string text = explanation(report);
  if (text.empty() && !failed) {
    throw Error(
        ErrorCode::kFailedPrecondition,
        fmt::format("{}: no step of this run was timed, since the first 10 never are: train "
                    "longer, for example with --steps 100",
                    run));
  }
  say(fmt::format("{}\n",
                  text.empty() ? "No step was timed before: the first 10 never are." : text));
  if (values->given("--json")) {
    write_text_file("the finding", values->text("--json"), json_of(explain(report), report));
  }
  return 0;
}

}  // namespace paceline
