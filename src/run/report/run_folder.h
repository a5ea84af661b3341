// The folder --out: its content when a run begins, and the files that the run writes to it.
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

/// The path OUT/checkpoints.
std::string checkpoints_folder(const RunOptions& run);

/// Prepares the folder before anything is started, in the process that decides for the job: the
/// only one, the launcher, or the chief of a cluster of processes. It makes the folder, and returns
/// its lock, to be held while the run lasts (null when there is nothing to lock). Throws kUsage
/// when the folder cannot be made, when another run writes there, or when it holds a checkpoint and
/// neither --resume nor --overwrite says what to do with it; kDataLoss when it is to be resumed
/// from and only torn ones are there.
std::unique_ptr<FolderLock> prepare_run_folder(const Cluster& cluster, const RunOptions& run);
/// True when this process is the one that decides for the job.
bool decides_for_job(const Cluster& cluster);

/// "; to go on from step 1200: COMMAND", when there is a checkpoint; else why not, or nothing.
std::string how_to_go_on(const RunOptions& run);

/// The files of this process's report: RunOptions::report, and OUT/report.json.
std::vector<std::string> report_files(const Cluster& cluster, const RunOptions& run);
/// Writes all of these files but those that are left as they are, and keeps the report in
/// ProgramRun::last_report. What stands at a path is never removed. Throws kUnavailable, naming the
/// file that cannot be written.
void write_reports(const Cluster& cluster, const RunOptions& run, const Report& report);
/// True for a file of an earlier run, if the run that `report` describes made no step: it was
/// resumed and had nothing to do, or it failed before it began.
bool is_left_as_it_is(const RunOptions& run, const Report& report, const std::string& file);

/// RunOptions::timeline; where there is none a file in OUT/timeline/, which is made: timeline.json,
/// or TASK.json of one task of a cluster of processes. Empty: no timeline is asked for.
std::string timeline_file(const Cluster& cluster, const RunOptions& run);

/// Returns the step of the newest checkpoint in --out that is whole by its sizes; empty when there
/// is none.
std::optional<std::int64_t> saved_step(const RunOptions& run);

/// The arguments with --resume and without --overwrite.
std::vector<std::string> resume_arguments(const std::vector<std::string>& arguments);
/// The command that resumes the run of these arguments.
std::string resume_command(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace paceline
