// The folder --out: what it may hold when a run begins, and the files that the run writes to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "run/report/folder_lock.h"
#include "run/report/report.h"

namespace paceline {

/// Returns the path OUT/checkpoints.
std::string checkpoints_folder(const RunOptions& run);

/// Prepares the folder before any task is started. Does nothing, and returns null, in a process
/// that does not decide for the job (decides_for_job).
///
/// Makes the folder, and returns its lock, to be held while the run lasts; null if the run has no
/// folder. Throws kUsage if the folder cannot be made or written to, if another run writes to it,
/// if it holds a checkpoint and neither --resume nor --overwrite says what to do with it, or if
/// --init-from names nothing that exists. Throws kDataLoss if the run is to resume and all
/// checkpoints are torn.
std::unique_ptr<FolderLock> prepare_run_folder(const Cluster& cluster, const RunOptions& run);
/// True if this process decides for the job: it is the only process, the launcher, or the chief of
/// a cluster of processes.
bool decides_for_job(const Cluster& cluster);

/// Returns "; to go on from step 1200: COMMAND" if there is a checkpoint; else the reason why there
/// is none.
std::string how_to_go_on(const RunOptions& run);

/// Returns the files of this process's report: RunOptions::report, and OUT/report.json if this
/// process decides for the job.
std::vector<std::string> report_files(const Cluster& cluster, const RunOptions& run);
/// Writes the report to report_files(), except those for which is_left_as_it_is holds, and keeps it
/// in ProgramRun::last_report. Never removes a file. Throws kUnavailable, naming the file that
/// cannot be written.
void write_reports(const Cluster& cluster, const RunOptions& run, const Report& report);
/// True for a file of an earlier run if the run of `report` made no step: it resumed a finished
/// run, or it failed before it began.
bool is_left_as_it_is(const RunOptions& run, const Report& report, const std::string& file);

/// Returns RunOptions::timeline if it is set; else timeline.json in the folder OUT/timeline, or
/// TASK.json for one task of a cluster of processes. Makes that folder. Returns an empty path
/// without --out, and for a launcher's task that got no --timeline.
std::string timeline_file(const Cluster& cluster, const RunOptions& run);

/// Returns the step of the newest checkpoint in --out whose files have the right sizes; empty if
/// there is none.
std::optional<std::int64_t> saved_step(const RunOptions& run);

/// Returns the arguments with --resume and without --overwrite.
std::vector<std::string> resume_arguments(const std::vector<std::string>& arguments);
/// Returns the command that resumes the run of these arguments.
std::string resume_command(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace paceline
