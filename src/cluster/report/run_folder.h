// The folder --out: its content when a run begins, and the files that the run writes to it.
#pragma once

#include <string>
#include <vector>

#include "cluster/report/report.h"
#include "paceline/cluster.h"
#include "paceline/run_options.h"

namespace paceline {

/// The path OUT/checkpoints.
std::string checkpoints_folder(const RunOptions& run);

/// Prepares the folder before anything is started, in the process that decides for the job: the
/// only one, the launcher, or the chief of a cluster of processes. It makes the folder. Throws
/// kUsage when it cannot be, or when it holds a checkpoint and neither --resume nor --overwrite
/// says what to do with it; kDataLoss when it is to be resumed from and only torn ones are there.
void prepare_run_folder(const Cluster& cluster, const RunOptions& run);
/// True when this process is the one that decides for the job.
bool decides_for_job(const Cluster& cluster);

/// "; to go on from step 1200: COMMAND", when there is a checkpoint; else why not, or nothing.
std::string how_to_go_on(const RunOptions& run);

/// The files of this process's report: RunOptions::report, and OUT/report.json.
std::vector<std::string> report_files(const Cluster& cluster, const RunOptions& run);
/// Writes all of these files. Throws kNotFound, naming the one that cannot be written.
void write_reports(const Cluster& cluster, const RunOptions& run, const Report& report);

/// RunOptions::timeline; where there is none a file in OUT/timeline/, which is made: timeline.json,
/// or TASK.json of one task of a cluster of processes. Empty: no timeline is asked for.
std::string timeline_file(const Cluster& cluster, const RunOptions& run);

/// The command that resumes the run: `arguments` with --resume and without --overwrite.
std::string resume_command(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace paceline
