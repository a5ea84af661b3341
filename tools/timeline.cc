// `paceline timeline`: merges the timelines that a run's tasks have left into one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/printed.h"
#include "cli/flags/command_line.h"
#include "paceline/error.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "trace/job_timeline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMerged = "timeline.json";

CommandLine timeline_flags() {
  return {
      "paceline timeline",
      "Puts the timelines of a run's tasks into one file for ui.perfetto.dev, with their clocks "
      "aligned, arrows from causes to effects in other tasks, and the critical path of each "
      "step. A task that was started by itself with --timeline, or with --out and "
      "--timeline-steps, leaves its part in RUN/timeline/TASK.json; parts of other machines are "
      "copied there first. (The launcher of --ps M --workers N merges by itself.) "
      "docs/timeline.md says what the file shows.",
      R"(Examples:
  paceline timeline out
  paceline timeline out --out job.json
  paceline timeline worker:0.json worker:1.json ps:0.json --out job.json)",
      {{"RUN", "PATH…", "The folder of the run, or the files of its tasks", "Run", true},
       {"--out", "FILE", "Write the timeline there (default: RUN/timeline/timeline.json)",
        "Flags"}}};
}

std::vector<std::string> parts_in(const std::string& run) {
  const fs::path folder = fs::path(run) / "timeline";
  std::vector<std::string> parts;
  if (fs::is_directory(folder)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".json" && path.filename() != kMerged) parts.push_back(path.string());
    }
  }
  if (parts.empty() && fs::exists(folder / kMerged)) {
    throw Error(
        ErrorCode::kFailedPrecondition,
        fmt::format("the timeline of this run is merged already: {}", (folder / kMerged).string()));
  }
  if (parts.empty()) {
    throw Error(ErrorCode::kNotFound, "there is no timeline of a task in " + folder.string());
  }
  std::ranges::sort(parts);
  return parts;
}

void check_runs(const std::vector<std::string>& runs) {
  // Errors are ignored: a file that may not be looked at counts as missing.
  std::error_code unseen;
  for (auto run = runs.begin(); run != runs.end(); ++run) {
    if (!fs::exists(*run, unseen)) refuse_flag("RUN", *run, "there is no such file or folder");
    if (std::any_of(runs.begin(), run, [&](const std::string& other) {
          return fs::equivalent(other, *run, unseen);
        })) {
      refuse_flag("RUN", *run, "is given twice");
    }
  }
}

}  // namespace

std::vector<CommandLine> timeline_lines() { return {timeline_flags()}; }

int timeline_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(timeline_flags(), arguments);
  if (!values) return 0;
  const std::vector<std::string> runs = values->all("RUN");
  check_runs(runs);
  const bool folder = runs.size() == 1 && fs::is_directory(runs.front());
  if (!folder && !values->given("--out")) {
    throw Error(ErrorCode::kUsage, "--out FILE is needed when RUN is not the folder of a run");
  }
  const std::string out =
      values->given("--out") ? values->text("--out") : runs.front() + "/timeline/" + kMerged;
  const std::vector<std::string> parts = folder ? parts_in(runs.front()) : runs;
  check_new_file("--out", out);
  const std::string summary = merge_timeline_files(parts, out);
  say(fmt::format("{}The timeline of {} is in {}.\n", summary,
                  counted(std::int64_t(parts.size()), "task"), out));
  return 0;
}

}  // namespace paceline
