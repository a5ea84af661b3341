// What held a run back that has ended, by its report.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "cli/flags/command_line.h"
#include "cli/flags/flag_checks.h"
#include "explain/explain.h"
#include "paceline/error.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/what_if.h"

namespace paceline {
namespace {

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
