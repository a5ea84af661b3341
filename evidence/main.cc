// The command `paceline-evidence`: measures what the project's pages claim.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "base/print_text.h"
#include "bench/measuring.h"
#include "cli/flags/command_line.h"
#include "cli/task_program.h"
#include "evidence/prediction_rates.h"
#include "evidence/report_rates.h"
#include "paceline/error.h"
#include "run/standard_streams.h"

namespace paceline::bench {
namespace {

using Arguments = std::vector<std::string>;

CommandLine reports_line() {
  return {
      "paceline-evidence reports",
      "Runs the clusters of five reports of slow training on emulated machines, and compares the "
      "speed of each with the bound by its devices, links and rules. Rows with links of a limited "
      "rate need root. Run nothing else meanwhile.",
      R"(Examples:
  paceline-evidence reports --quick
  paceline-evidence reports --only resnet --json figures.json
  scripts/make_reports_page figures.json)",
      {{"--only", "NAME", "Measure the rows with this in their name (resnet, 'local steps')",
        "Flags"},
       {"--quick", "", "Measure a few rows of each report", "Flags"},
       {"--json", "FILE", "Write every figure to this JSON file, too", "Flags"},
       {"--repeat", "N", "The number of runs of every row (default 1)", "Flags"}}};
}

CommandLine prediction_line() {
  return {"paceline-evidence predictions",
          "Runs configurations for real, and compares the speed of each with what it expected "
          "before its first step. A run goes on where the last one of the same version ended. Run "
          "nothing else meanwhile.",
          R"(Examples:
  paceline-evidence predictions --minutes 5
  paceline-evidence predictions --computed --only mlp)",
          {{"--only", "NAME", "Measure the rows with this in their name ('mlp, async')", "Flags"},
           {"--computed", "", "Train on this machine's cores, instead of on simulated devices",
            "Flags"},
           {"--csv", "FILE", "Append rows to this file (default predictions.csv)", "Flags"},
           {"--minutes", "M", "Begin no row after so many minutes (default 60)", "Flags"},
           {"--json", "FILE", "Write every figure to this JSON file, too", "Flags"}}};
}

Measuring begin(const std::string& name, const FlagValues& values, const Arguments& arguments,
                int repeats) {
  return {fmt::format("paceline-evidence {} {}", name, fmt::join(arguments, " ")),
          values.text("--json"), repeats};
}

int reports_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(reports_line(), arguments);
  if (!values) return 0;
  const ReportSelection selection{values->text("--only"), values->given("--quick")};
  check(selection);
  const int repeats = int(values->whole_number("--repeat", 1, kMostRepeats).value_or(1));
  Measuring measuring = begin("reports", *values, arguments, repeats);
  measuring.recorder().begin("reports", repeats);
  measure_reports(measuring.recorder(), selection, [&] { measuring.keep(); });
  measuring.keep();
  return 0;
}

int prediction_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(prediction_line(), arguments);
  if (!values) return 0;
  const PredictionSelection selection{
      .only = values->text("--only"),
      .csv = values->given("--csv") ? values->text("--csv") : "predictions.csv",
      .minutes = values->positive_number("--minutes").value_or(60),
      .computed = values->given("--computed")};
  Measuring measuring = begin("predictions", *values, arguments, 1);
  measuring.recorder().begin("predictions", 1);
  measure_predictions(measuring.recorder(), selection);
  measuring.keep();
  return 0;
}

struct Part {
  std::string_view name, help;
  int (*run)(const Arguments&);
  std::string_view old_name = "";  // that an earlier version had
};

constexpr std::array kParts = {
    Part{"reports", "The clusters of five reports of slow training, compared with their bounds",
         reports_command},
    Part{"predictions",
         "Configurations run for real, compared with what each expected before step 1",
         prediction_command, "foresight"}};

std::string help_text() {
  std::string text =
      "Measures what Paceline's pages claim. Runs the command `paceline` that lies beside it.\n\n"
      "Usage: paceline-evidence PART …\n\n";
  for (const Part& part : kParts) text += fmt::format("  {:<12}{}\n", part.name, part.help);
  return text + "\n--help after a part lists its flags.\n";
}

int run(const Arguments& arguments) {
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "the part is missing\n\n" + help_text());
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") {
    fmt::print("{}", help_text());
    return 0;
  }
  std::vector<std::string_view> names;
  for (const Part& part : kParts) {
    const bool is_old = !part.old_name.empty() && part.old_name == name;
    if (is_old) {
      print_text(stderr,
                 fmt::format("paceline-evidence {} is now called {}: the next version reads "
                             "the new name only\n",
                             name, part.name));
    }
    if (is_old || part.name == name) return part.run({arguments.begin() + 1, arguments.end()});
    names.push_back(part.name);
  }
  throw Error(ErrorCode::kUsage, fmt::format("unknown part '{}'{} ({})", name,
                                             did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace
}  // namespace paceline::bench

int main(int argc, char** argv) {
  paceline::prepare_standard_streams();
  return paceline::report_errors([&] { return paceline::bench::run({argv + 1, argv + argc}); });
}
