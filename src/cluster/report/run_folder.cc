#include "cluster/report/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>

#include "checkpoint/checkpoints.h"
#include "cluster/flags/command_line.h"
#include "paceline/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

void make_folder(const std::string& out) {
  std::error_code error;
  fs::create_directories(out, error);
  if (!fs::is_directory(out)) {
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
  if (!run.quiet) fmt::print("No checkpoint in {} yet: training begins.\n", run.out);
}

// The text as one word of a shell.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string checkpoints_folder(const RunOptions& run) { return run.out + "/checkpoints"; }

bool decides_for_job(const Cluster& cluster) {
  if (cluster.launched) return false;
  return cluster.role != Cluster::Role::kTask || cluster.is_chief();
}

void prepare_run_folder(const Cluster& cluster, const RunOptions& run) {
  if (!decides_for_job(cluster)) return;
  if (!run.init_from.empty() && !fs::exists(run.init_from)) {
    refuse_flag("--init-from", run.init_from, "there is no such file or folder");
  }
  if (run.out.empty()) {
    if (!run.quiet) {
      const bool files = !run.report.empty() || !run.timeline.empty();
      fmt::print("No --out: nothing is written{}.\n", files ? " but what other flags name" : "");
    }
    return;
  }
  make_folder(run.out);
  const Checkpoints::Newest newest =
      Checkpoints(checkpoints_folder(run)).newest_whole(WholeCheck::kSizes);
  if (run.overwrite) return;
  if (run.resume) return check_resume(run, newest);
  if (!newest.whole && newest.torn.empty()) return;
  const FoundCheckpoint& found = newest.whole ? *newest.whole : newest.torn.front();
  refuse_flag("--out", run.out,
              fmt::format("holds a checkpoint of step {}{}: --resume goes on from it, --overwrite "
                          "deletes it and begins anew",
                          found.step, newest.whole ? "" : ", which is not whole"));
}

std::string how_to_go_on(const RunOptions& run) {
  if (run.out.empty()) return "; nothing was saved (no --out)";
  const auto newest = Checkpoints(checkpoints_folder(run)).newest_whole(WholeCheck::kSizes).whole;
  if (!newest) return "; no checkpoint was written yet";
  return fmt::format("; to go on from step {}: {}", newest->step, run.resume_command);
}

std::vector<std::string> report_files(const Cluster& cluster, const RunOptions& run) {
  std::vector<std::string> files;
  if (!run.report.empty()) files.push_back(run.report);
  if (!run.out.empty() && decides_for_job(cluster)) files.push_back(run.out + "/report.json");
  return files;
}

void write_reports(const Cluster& cluster, const RunOptions& run, const Report& report) {
  for (const std::string& file : report_files(cluster, run)) write_report(file, report);
}

std::string timeline_file(const Cluster& cluster, const RunOptions& run) {
  // The launcher gives its tasks the names of their files.
  if (!run.timeline.empty() || run.out.empty() || cluster.launched) return run.timeline;
  const std::string folder = run.out + "/timeline";
  std::error_code ignored;  // the file cannot be written then, which is said
  fs::create_directories(folder, ignored);
  const bool one_task = cluster.role == Cluster::Role::kTask;
  return fmt::format("{}/{}.json", folder, one_task ? cluster.task.str() : "timeline");
}

std::string resume_command(const std::string& program, const std::vector<std::string>& arguments) {
  std::string text = quoted(program);
  for (const std::string& argument : arguments) {
    if (argument != "--overwrite" && argument != "--resume") text += " " + quoted(argument);
  }
  return text + " --resume";
}

}  // namespace paceline
