#include <fmt/format.h>

#include "cli/flags/command_line.h"
#include "paceline/error.h"
#include "run/report/report.h"
#include "tools/comparison.h"
#include "tools/say.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

CommandLine compare_flags() {
  return {
      "paceline compare",
      "Compares the reports of runs of one model: how fast each was, how its loss or perplexity "
      "fell, and where its time went. Each run is compared with the first.",
      R"(Examples:
  paceline train ptb --data text --steps 300 --report alone.json
  paceline train ptb --data text --steps 300 --ps 1 --workers 2 --report cluster.json
  paceline compare alone.json cluster.json
  paceline compare out-1 out-2 out-3)",
      {{"REPORT", "PATH…",
        "The reports of the runs, or their folders (--out); the first is what the others are "
        "compared with",
        "Reports", true},
       {"--simulated", "FILE FILE", "Two more reports, with a simulated device for each worker",
        "Flags", false, 2},
       {"--title", "TEXT", "The name of the job in the output (default: the model)", "Flags"},
       {"--reported", "TEXT", "A result of others to print beside the simulated line", "Flags"}}};
}

}  // namespace

std::vector<CommandLine> compare_lines() { return {compare_flags()}; }

int compare_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(compare_flags(), arguments);
  if (!values) return 0;
  Comparison comparison;
  for (const std::string& file : values->all("REPORT")) {
    comparison.runs.push_back({file, read_report(file)});
  }
  comparison.title =
      values->given("--title") ? values->text("--title") : comparison.runs.front().report.model;
  comparison.reported = values->text("--reported");
  if (const std::vector<std::string> simulated = values->all("--simulated"); !simulated.empty()) {
    if (simulated.size() != 2) throw Error(ErrorCode::kUsage, "--simulated needs two reports");
    comparison.simulated_alone = read_report(simulated[0]);
    comparison.simulated_cluster = read_report(simulated[1]);
  }
  say(comparison_text(comparison));
  return 0;
}

}  // namespace paceline
