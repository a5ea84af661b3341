#include "run/report/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/print_text.h"
#include "base/text_file.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "paceline/error.h"
#include "run/program_run.h"
#include "run/usage_errors.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

void make_folder(const std::string& out) {
  std::error_code error;
  fs::create_directories(out, error);
  std::error_code unknown;
  if (!fs::is_directory(out, unknown)) {
    refuse_flag("--out", out, "the folder cannot be made" + (error ? ": " + error.message() : ""));
  }
  if (access(out.c_str(), W_OK) != 0) refuse_flag("--out", out, "cannot be written to");
}

void check_resume(const RunOptions& run, const Checkpoints::Newest& newest) {
  if (newest.whole) return;
  if (!newest.torn.empty()) {
    throw Error(
        ErrorCode::kDataLoss,
        fmt::format("--resume: no checkpoint in {} is whole: {}; --overwrite instead deletes "
                    "what is there and begins anew",
                    run.out, newest.torn.front().torn));
  }
  if (!run.quiet)
    print_text(stdout, fmt::format("No checkpoint in {} yet: training begins.\n", run.out));
}

void check_checkpoints(const RunOptions& run) {
  if (run.overwrite) return;
  const Checkpoints::Newest newest =
      Checkpoints(checkpoints_folder(run)).newest_whole(WholeCheck::kSizes);
  if (run.resume) return check_resume(run, newest);
  if (!newest.whole && newest.torn.empty()) return;
  const FoundCheckpoint& found = newest.whole ? *newest.whole : newest.torn.front();
  refuse_flag("--out", run.out,
              fmt::format("holds a checkpoint of step {}{}: --resume goes on from it, --overwrite "
                          "deletes it and begins anew",
                          found.step, newest.whole ? "" : ", which is not whole"));
}

// Checks that the file or run of --init-from exists. Its checkpoint is read only when training
// begins.
void check_init_from(const RunOptions& run) {
  if (run.init_from.empty()) return;
  const std::string named = run_of_best(run.init_from).value_or(run.init_from);
  if (fs::exists(named)) return;
  refuse_flag("--init-from", run.init_from, "there is no such file or folder");
}

}  // namespace

std::string checkpoints_folder(const RunOptions& run) { return run.out + "/checkpoints"; }

bool decides_for_job(const Cluster& cluster) {
  if (cluster.launch.launched && !cluster.launch.in_command) return false;
  return cluster.process != Cluster::Process::kTask || cluster.is_chief();
}

std::unique_ptr<FolderLock> prepare_run_folder(const Cluster& cluster, const RunOptions& run) {
  if (!decides_for_job(cluster)) return nullptr;
  check_init_from(run);
  if (run.out.empty()) {
    if (!run.quiet) {
      const bool files = !run.report.empty() || !run.timeline.empty();
      print_text(stdout, fmt::format("No --out: nothing is written{}.\n",
                                     files ? " but what other flags name" : ""));
    }
    return nullptr;
  }
  make_folder(run.out);
  auto lock = std::make_unique<FolderLock>(run.out);
  check_checkpoints(run);
  return lock;
}

std::string how_to_go_on(const RunOptions& run) {
  if (run.out.empty()) return "; nothing was saved (no --out)";
  const auto newest = Checkpoints(checkpoints_folder(run)).newest_to_name();
  if (!newest) return "; no checkpoint was written yet";
  return fmt::format("; to go on from step {}: {}", newest->step,
                     program_run_of(run).resume_command);
}

std::vector<std::string> report_files(const Cluster& cluster, const RunOptions& run) {
  std::vector<std::string> files;
  if (!run.report.empty()) files.push_back(run.report);
  if (!run.out.empty() && decides_for_job(cluster)) files.push_back(report_in(run.out));
  return files;
}

void write_reports(const Cluster& cluster, const RunOptions& run, const Report& report) {
  if (Report* const kept = program_run_of(run).last_report) *kept = report;
  Report complete = report;
  complete.circumstances = circumstances();
  for (const std::string& file : report_files(cluster, run)) {
    if (!is_left_as_it_is(run, report, file)) write_report(file, complete);
  }
}

bool is_left_as_it_is(const RunOptions& run, const Report& report, const std::string& file) {
  const bool made_nothing = report.steps() == 0 && (run.resume || !report.error.empty());
  return made_nothing && fs::is_regular_file(file) && !is_written_through(file);
}

std::string timeline_file(const Cluster& cluster, const RunOptions& run) {
  // For tasks of a launcher, the launcher names the files.
  const bool of_launcher = cluster.launch.launched && !cluster.launch.in_command;
  if (!run.timeline.empty() || run.out.empty() || of_launcher) return run.timeline;
  const std::string folder = run.out + "/timeline";
  // This error is ignored: the timeline then cannot be written, and a message says so.
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const bool one_task = cluster.process == Cluster::Process::kTask;
  return fmt::format("{}/{}.json", folder, one_task ? cluster.task.str() : "timeline");
}

std::optional<std::int64_t> saved_step(const RunOptions& run) {
  const auto newest = Checkpoints(checkpoints_folder(run)).newest_whole(WholeCheck::kSizes).whole;
  return newest ? std::optional(newest->step) : std::nullopt;
}

std::vector<std::string> resume_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> all;
  for (const std::string& argument : arguments) {
    if (argument != "--overwrite" && argument != "--resume") all.push_back(argument);
  }
  all.emplace_back("--resume");
  return all;
}

std::string resume_command(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program};
  const std::vector<std::string> all = resume_arguments(arguments);
  words.insert(words.end(), all.begin(), all.end());
  return shell_words(words);
}

}  // namespace paceline
