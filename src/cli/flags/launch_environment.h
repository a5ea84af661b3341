// The systems that start the processes of a job, and tell each process through its environment
// which one it is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

struct MeetingPlan;

/// Returns the text of a variable, or null when it is not set.
using Environment = std::function<const char*(const char* name)>;
/// The environment of this process.
const char* own_environment(const char* name);
/// Returns the text of a variable; empty if it is not set, or if `name` is null.
std::string_view text_in(const Environment& environment, const char* name);

/// This process, as a system such as Slurm describes it.
struct LaunchedBy {
  std::string_view name;    // as --launcher takes it: "slurm"
  std::string_view system;  // "Slurm"
  // How many processes the system has started; empty if it does not say.
  std::optional<int> processes;
  std::string seen;      // the variables: "SLURM_STEP_NUM_TASKS=4, SLURM_PROCID=2"
  std::string index;     // the variable with the number of this process: "SLURM_PROCID"
  std::string_view one;  // how a user of the system starts one process: "srun -n 1"
};

/// The numbers of tasks of a job, from flags or from the system that started the tasks.
struct GivenTasks {
  int ps = 0, workers = 0;
};

/// Returns, for each system that has left its variables in the environment, what these say.
std::vector<LaunchedBy> launched_by(const Environment& environment);

/// Returns the names that --launcher takes: "tf_config", "slurm", …, "none".
std::vector<std::string> launcher_names();

/// True unless --launcher names a source other than `name`, or --alone excludes all sources.
bool may_read(const FlagValues& values, std::string_view name);

/// Returns the flags with which this process joins its job according to $TF_CONFIG; none if
/// --launcher names another source. Throws kUsage: as flags_of_tf_config does; if --launcher names
/// no known source; and if it names this source and $TF_CONFIG is not set.
std::vector<GivenFlag> flags_of_environment(const FlagValues& values,
                                            const Environment& environment);

/// Throws kUsage if two sources disagree about the number of processes, or about which one this
/// process is. The sources are the system that started the process, `given` (the flags of TF_CONFIG
/// that count for this process), and variables that anybody may have set. Flags that say which task
/// this is override all sources.
void check_sources_agree(const FlagValues& values, const std::vector<GivenFlag>& given,
                         const Environment& environment);

/// Returns the flags with which this process joins its job, if a system started several processes
/// (flags_of_slurm). Returns none if flags say which task this is, if MPI joins the processes, or
/// if nothing is trained. The given --ps M says how many of the processes are parameter servers.
/// Throws kUsage.
std::vector<GivenFlag> flags_of_launcher(const FlagValues& values, const Environment& environment);

/// Returns where this process meets the others, for launchers that tell each process only a rank
/// and one address. Returns nothing in the cases in which flags_of_launcher returns none. Throws
/// kUsage.
std::optional<MeetingPlan> meeting_plan(const FlagValues& values, const Environment& environment);

/// Returns how users give each process the job's key under the launcher that has placed this
/// process (--placed); empty if no launcher has.
std::string key_hint(const FlagValues& values);

/// Returns the line that says which task this process became and which launcher decided so; empty
/// without a launcher.
std::string placed_in_words(const FlagValues& values);

/// Throws kUsage if each process would train the whole job by mistake: if a system has started
/// several processes and no flag says which task this one is, or if a system tells this process's
/// number but not how many there are. --alone, or --launcher none, says that this is intended.
void check_one_of_several(const FlagValues& values, const Environment& environment);

/// Returns a line for the user if the environment offers devices ($CUDA_VISIBLE_DEVICES) to a run
/// that uses cores; else empty.
std::string unused_devices(const Environment& environment);

}  // namespace paceline
