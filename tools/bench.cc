#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "bench/cases.h"
#include "bench/generated_text.h"
#include "bench/measuring.h"
#include "bench/step_rates.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/settings_reader.h"
#include "paceline/error.h"
#include "params/collective/mpi_library.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

constexpr std::int64_t kWordsOfText = 1'000'000;

/// The workloads that `step` measures when no model is named.
const Arguments kUsualSteps[] = {
    {"mlp"}, {"mlp", "--ps", "1", "--workers", "1"}, {"mlp", "--ps", "1", "--workers", "4"},
    {"ptb"}, {"ptb", "--ps", "1", "--workers", "2"}, {"fetch", "--ps", "1", "--workers", "1"},
};

std::string cases_text() {
  std::string text;
  for (const bench::Case& each : bench::all_cases()) {
    text += fmt::format("  {:<12}{}\n", each.name, each.help);
  }
  return text;
}

constexpr const char* kStepExamples =
    R"(Each repeat is a run of its own with 5 s of timed steps (--seconds, --steps), which begin when
every worker is warm. The roof is measured before and after it.

Examples:
  {command}
  {command} --ps 1 --workers 2 --repeat 5
  {command} --seconds 10 --threads 1 --json figures.json)";

CommandLine bench_flags() {
  return {
      "paceline bench",
      "paceline bench [CASE…] [step MODEL [flags of paceline train MODEL]] [--json FILE] …\n\n"
      "Measures this machine and Paceline on it. Every figure is the median of several repeats, "
      "with the first and third quartile. Things that are compared are measured by turns.\n\n"
      "Cases (default: all):\n" +
          cases_text(),
      R"(Bound and roof:
  The roof is the best that this machine can do: plain oneDNN products and passes over memory.
  The bound is the time of a step whose FLOPs, memory traffic and bytes on links all run at the
  roof; it follows from the graph. At 0.9 of the bound a tenth can still be gained.

step without a MODEL measures mlp, ptb (on generated text) and fetch, in one process and in
clusters. Each repeat is a run of 5 s (--seconds); paceline bench step MODEL --help lists the flags.
bench/compare in the source tree runs a workload by turns with TensorFlow, PyTorch or JAX, or a
cluster with one process.

Examples:
  paceline bench roof
  paceline bench links rules --repeat 21 --json figures.json
  paceline bench step mlp --threads 2
  paceline bench step mlp --ps 1 --workers 4 --seconds 10
  paceline bench step ptb --data text --size medium

Run nothing else meanwhile. docs/benchmarks.md describes the layout of --json.)",
      {{"--list", "", "Print the cases and end", "Flags"},
       {"--json", "FILE", "Write every figure to this JSON file, too", "Flags"},
       {"--repeat", "N", "The number of repeats of every figure (default 9)", "Flags"}}};
}

/// The parts of the command line.
struct BenchArguments {
  Arguments own;                   // flags of bench
  std::vector<std::string> cases;  // by name
  Arguments step;                  // the words after "step": a model with its flags; may be empty
};

bool is_case(const std::string& word) {
  return std::ranges::count(bench::all_cases(), word, &bench::Case::name) > 0;
}

// The word "fetch" names a case and a model. After "step" it is the model.
bool is_model(const std::string& word) { return models::find_model(word) != nullptr; }

const bench::Case& find_case(const std::string& name) {
  if (is_case(name) || !is_model(name)) return bench::find_case(name);
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown case '{0}', which is a model: bench step {0}", name));
}

bool is_own_flag_with_value(const std::string& argument) {
  return argument == "--json" || argument == "--repeat";
}

bool is_own_flag_and_value(const std::string& argument) {
  return argument.starts_with("--json=") || argument.starts_with("--repeat=");
}

BenchArguments take_apart(const Arguments& arguments) {
  BenchArguments parts;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool in_step = !parts.step.empty();
    const bool begins_step = !parts.cases.empty() && parts.cases.back() == "step" &&
                             !argument.starts_with('-') &&
                             (is_model(argument) || !is_case(argument));
    if (is_own_flag_with_value(argument)) {
      parts.own.push_back(argument);
      if (i + 1 < arguments.size()) parts.own.push_back(arguments[++i]);
    } else if (is_own_flag_and_value(argument) || (!in_step && argument.starts_with('-'))) {
      parts.own.push_back(argument);
    } else if (in_step || begins_step) {
      parts.step.push_back(argument);
    } else {
      parts.cases.push_back(argument);
    }
  }
  return parts;
}

CommandLine step_flags(const models::Model& model) {
  CommandLine line = train_flags(model);
  line.name = fmt::format("paceline bench step {}", model.name());
  // The command starts all tasks itself and chooses the files of their reports.
  std::erase_if(line.flags, [](const Flag& flag) {
    return flag.name == "--dry-run" || flag.group == kProcessFlags || flag.group == kOutputFlags;
  });
  line.examples = settings_text(model.settings().declared()) + "\n" +
                  fmt::format(kStepExamples, fmt::arg("command", line.name));
  return line;
}

/// Returns the case that the arguments describe; nothing if they only asked for the help.
std::optional<bench::StepCase> read_step(Arguments arguments, bench::GeneratedText& text) {
  const models::Model& model = named_model(arguments.front());
  const CommandLine line = step_flags(model);
  std::optional<FlagValues> values =
      parse_job(line, {arguments.begin() + 1, arguments.end()}, nullptr);
  if (!values) return {};
  const std::vector<AnySetting> declared = model.settings().declared();
  if (!values->given("--data") && std::ranges::count(declared, "data", &AnySetting::name) > 0) {
    values->add("--data", text.folder());
    arguments.insert(arguments.end(), {"--data", text.folder()});
  }
  const TrainJob job = read_train_job(model, line, *values);
  bench::StepCase one{&model, job.settings, job.cluster, job.run, std::move(arguments)};
  bench::check(one);
  return one;
}

/// Reads all steps before anything is measured, so that a mistake in the last flag does not waste
/// earlier measurements.
std::optional<std::vector<bench::StepCase>> read_steps(const BenchArguments& arguments,
                                                       bench::GeneratedText& text) {
  std::vector<Arguments> lines(std::begin(kUsualSteps), std::end(kUsualSteps));
  if (!arguments.step.empty()) lines = {arguments.step};
  std::vector<bench::StepCase> steps;
  for (const Arguments& line : lines) {
    std::optional<bench::StepCase> step = read_step(line, text);
    if (!step) return {};
    steps.push_back(std::move(*step));
  }
  return steps;
}

/// The cases to measure.
struct Selected {
  std::vector<const bench::Case*> cases;
  int repeats = 9;
  std::vector<bench::StepCase> steps;  // of the case step
};

void measure(bench::Measuring& measuring, const Selected& selected) {
  bench::Recorder& recorder = measuring.recorder();
  for (const bench::Case* each : selected.cases) {
    recorder.begin(std::string(each->name), selected.repeats);
    if (each->measure != nullptr) each->measure(recorder);
    measuring.keep();
    if (each->name != "step") continue;
    for (const bench::StepCase& step : selected.steps) {
      bench::measure_step(recorder, step);
      measuring.keep();
    }
  }
}

}  // namespace

std::vector<CommandLine> bench_lines() {
  std::vector<CommandLine> lines = {bench_flags()};
  for (const bench::Case& each : bench::all_cases()) {
    lines.front().words.emplace_back(each.name);
  }
  for (const models::Model* model : models::all_models()) lines.push_back(step_flags(*model));
  return lines;
}

int bench_command(const Arguments& arguments) {
  const BenchArguments parts = take_apart(arguments);
  const std::optional<FlagValues> values = parse(bench_flags(), parts.own);
  if (!values) return 0;
  if (values->given("--list")) {
    fmt::print("{}", cases_text());
    return 0;
  }
  Selected selected;
  if (const auto given = values->whole_number("--repeat", 1, bench::kMostRepeats)) {
    selected.repeats = int(*given);
  }
  for (const std::string& name : parts.cases) selected.cases.push_back(&find_case(name));
  for (const bench::Case& each : bench::all_cases()) {
    if (parts.cases.empty()) selected.cases.push_back(&each);
  }
  bench::GeneratedText text(kWordsOfText);
  const auto is_step = [](const bench::Case* each) { return each->name == "step"; };
  if (std::ranges::any_of(selected.cases, is_step)) {
    std::optional<std::vector<bench::StepCase>> steps = read_steps(parts, text);
    if (!steps) return 0;
    selected.steps = std::move(*steps);
  }
  // Of the processes that mpirun starts for `collectives`, the first one writes.
  const bool writes = rank_by_mpirun().value_or(0) == 0;
  bench::Measuring measuring(fmt::format("paceline bench {}", fmt::join(arguments, " ")),
                             writes ? values->text("--json") : "", selected.repeats);
  measure(measuring, selected);
  return 0;
}

}  // namespace paceline
