#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/cores.h"
#include "base/text_file.h"
#include "bench/cases.h"
#include "bench/foresight_rates.h"
#include "bench/generated_text.h"
#include "bench/report_rates.h"
#include "bench/step_rates.h"
#include "cluster/flags/flags.h"
#include "cluster/flags/job_flags.h"
#include "cluster/flags/settings_reader.h"
#include "cluster/launch/mpi_job.h"
#include "kernels/cpu/instruction_set.h"
#include "paceline/error.h"
#include "paceline/version.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

constexpr std::int64_t kMostRepeats = 1000;
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
      "Cases (default: all but reports and foresight):\n" +
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
  paceline bench reports --quick
  paceline bench foresight --minutes 5
  paceline bench foresight --computed --only mlp

Run nothing else meanwhile. docs/benchmarks.md describes the layout of --json.)",
      {{"--list", "", "Print the cases and end", "Flags"},
       {"--json", "FILE", "Write every figure to this JSON file, too", "Flags"},
       {"--repeat", "N", "The number of repeats of every figure (default 9, of reports 1)",
        "Flags"},
       {"--only", "NAME",
        "With reports: measure the rows with this in their name (resnet, 'local steps'); with "
        "foresight: the same ('mlp, async')",
        "Flags"},
       {"--quick", "", "With reports: measure a few rows of each", "Flags"},
       {"--computed", "",
        "With foresight: train on this machine's cores, instead of on simulated devices", "Flags"},
       {"--csv", "FILE", "With foresight: append rows to this file (default foresight.csv)",
        "Flags"},
       {"--minutes", "M",
        "With foresight: begin no row after so many minutes; another run goes on (default 60)",
        "Flags"}}};
}

/// The parts of the command line.
struct BenchArguments {
  Arguments own;                   // flags of bench
  std::vector<std::string> cases;  // by name
  Arguments step;                  // a model with its flags; may be empty
};

bool is_case(const std::string& word) {
  return std::ranges::count(bench::all_cases(), word, &bench::Case::name) > 0;
}

// "fetch" is a case and a model. After "step" it is the model.
bool is_model(const std::string& word) { return models::find_model(word) != nullptr; }

const bench::Case& find_case(const std::string& name) {
  if (is_case(name) || !is_model(name)) return bench::find_case(name);
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown case '{0}', which is a model: bench step {0}", name));
}

bool is_own_flag_with_value(const std::string& argument) {
  return argument == "--json" || argument == "--repeat" || argument == "--only" ||
         argument == "--csv" || argument == "--minutes";
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
    return flag.name == "--dry-run" || flag.name == "--existing-servers" ||
           flag.group == kProcessFlags || flag.group == kOutputFlags;
  });
  line.examples = settings_text(model.settings().declared()) + "\n" +
                  fmt::format(kStepExamples, fmt::arg("command", line.name));
  return line;
}

/// The case that the arguments describe; nothing when only the help was asked for.
std::optional<bench::StepCase> read_step(Arguments arguments, bench::GeneratedText& text) {
  const models::Model& model = named_model(arguments.front());
  const CommandLine line = step_flags(model);
  std::optional<FlagValues> values =
      parse_job(line, {arguments.begin() + 1, arguments.end()}, nullptr);
  if (!values) return {};
  const std::vector<Setting> declared = model.settings().declared();
  if (!values->given("--data") && std::ranges::count(declared, "data", &Setting::name) > 0) {
    values->add("--data", text.folder());
    arguments.insert(arguments.end(), {"--data", text.folder()});
  }
  const TrainJob job = read_train_job(model, line, *values);
  bench::StepCase one{&model, job.settings, job.cluster, job.run, std::move(arguments)};
  bench::check(one);
  return one;
}

/// The steps are read before anything is measured, so that a mistake in the last flag does not cost
/// the first figures.
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

bench::ReportSelection read_selection(const FlagValues& values,
                                      const std::vector<const bench::Case*>& cases) {
  const auto measures = [&](std::string_view name) {
    return std::ranges::count(cases, name, &bench::Case::name) > 0;
  };
  const auto refuse = [&](const std::string& flag, const char* of) {
    throw Error(ErrorCode::kUsage, fmt::format("{} selects rows of the case {}: paceline bench {} "
                                               "{}",
                                               flag, of, of, flag));
  };
  if (!measures("foresight")) {
    for (const char* flag : {"--computed", "--csv", "--minutes"}) {
      if (values.given(flag)) refuse(flag, "foresight");
    }
  }
  if (!measures("reports")) {
    if (values.given("--quick")) refuse("--quick", "reports");
    if (values.given("--only") && !measures("foresight")) refuse("--only", "reports");
    return {};
  }
  bench::ReportSelection selection{values.text("--only"), values.given("--quick")};
  bench::check(selection);
  return selection;
}

bench::ForesightSelection read_foresight(const FlagValues& values) {
  bench::ForesightSelection selection{.only = values.text("--only"),
                                      .csv = values.text("--csv"),
                                      .minutes = values.positive_number("--minutes").value_or(60),
                                      .computed = values.given("--computed")};
  if (selection.csv.empty()) selection.csv = "foresight.csv";
  return selection;
}

bench::Circumstances circumstances(const Arguments& arguments, int repeats) {
  return {.command = fmt::format("paceline bench {}", fmt::join(arguments, " ")),
          .date = bench::today(),
          .processor = processor_name(),
          .paceline = version_and_commit(),
          .onednn = onednn_version(),
          .cores = cores_of_machine(),
          .repeats = repeats};
}

void warn_of_debug_build() {
#ifndef NDEBUG
  fmt::print(stderr,
             "paceline bench: this is a debug build: it takes many minutes and its figures mean "
             "nothing; use build/release/paceline (cmake --build --preset release)\n");
#endif
}

/// The cases to measure.
struct Selected {
  std::vector<const bench::Case*> cases;
  std::optional<int> repeats;      // the usual number of each, if not given
  bench::ReportSelection reports;  // of the case reports
  bench::ForesightSelection foresight = {};
  std::vector<bench::StepCase> steps;  // of the case step
};

/// `keep` is called after each case, so that a later failure does not cost its figures.
void measure(bench::Recorder& recorder, const Selected& selected,
             const std::function<void()>& keep) {
  for (const bench::Case* each : selected.cases) {
    recorder.begin(std::string(each->name), selected.repeats.value_or(each->repeats));
    if (each->measure != nullptr) each->measure(recorder);
    if (each->name == "reports") measure_reports(recorder, selected.reports, keep);
    if (each->name == "foresight") measure_foresight(recorder, selected.foresight);
    keep();
    if (each->name != "step") continue;
    for (const bench::StepCase& step : selected.steps) {
      bench::measure_step(recorder, step);
      keep();
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
  if (const auto given = values->whole_number("--repeat", 1, kMostRepeats)) {
    selected.repeats = int(*given);
  }
  for (const std::string& name : parts.cases) selected.cases.push_back(&find_case(name));
  for (const bench::Case& each : bench::all_cases()) {
    if (parts.cases.empty() && each.usual) selected.cases.push_back(&each);
  }
  selected.reports = read_selection(*values, selected.cases);
  selected.foresight = read_foresight(*values);
  bench::GeneratedText text(kWordsOfText);
  const auto is_step = [](const bench::Case* each) { return each->name == "step"; };
  if (std::ranges::any_of(selected.cases, is_step)) {
    std::optional<std::vector<bench::StepCase>> steps = read_steps(parts, text);
    if (!steps) return 0;
    selected.steps = std::move(*steps);
  }
  // Of the processes that mpirun starts for `collectives` the first one writes.
  const bool writes = rank_by_mpirun().value_or(0) == 0;
  const std::string json = writes ? values->text("--json") : "";
  if (!json.empty()) check_new_file("--json", json);
  warn_of_debug_build();
  const int repeats = selected.repeats.value_or(selected.cases.front()->repeats);
  const bench::Circumstances where = circumstances(arguments, repeats);
  fmt::print("{}, {} cores; {}; median of {} and quartiles\n\n", where.processor, where.cores,
             where.date, repeats);
  bench::Recorder recorder;
  measure(recorder, selected, [&] {
    if (!json.empty()) write_text_file("--json", json, to_json(where, recorder.tables()));
  });
  return 0;
}

}  // namespace paceline
