// The systems that start the processes of a job, and tell each of them who it is in its
// environment.
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
/// The text of a variable; empty when it is not set, or `name` is null.
std::string_view text_in(const Environment& environment, const char* name);

/// This process, as a system such as Slurm describes it.
struct LaunchedBy {
  std::string_view name;         // as --launcher takes it: "slurm"
  std::string_view system;       // "Slurm"
  std::optional<int> processes;  // that it has started; nothing: it does not say how many
  std::string seen;              // the variables: "SLURM_STEP_NUM_TASKS=4, SLURM_PROCID=2"
  std::string index;             // the variable with the number of this process: "SLURM_PROCID"
  std::string_view one;          // how a user of the system starts one process: "srun -n 1"
};

/// The numbers of tasks of a job, from flags or from the system that has started the tasks.
struct GivenTasks {
  int ps = 0, workers = 0;
};

/// Returns what each system says that has left its variables in the environment.
std::vector<LaunchedBy> launched_by(const Environment& environment);

/// Returns the names that --launcher takes: "tf_config", "slurm", …, "none".
std::vector<std::string> launcher_names();

/// True unless --launcher names another source than `name`, or --alone none.
bool may_read(const FlagValues& values, std::string_view name);

/// Returns the flags by which this process joins its job, as $TF_CONFIG gives them; none where
/// --launcher says otherwise. Throws kUsage: as flags_of_tf_config does, and when --launcher names
/// no source, or this one and it is not there.
std::vector<GivenFlag> flags_of_environment(const FlagValues& values,
                                            const Environment& environment);

/// Throws kUsage when `given`, the flags of TF_CONFIG that count for this process, or variables
/// that anybody may have set, say another number of processes, or another one of them, than the
/// system that has started it. Flags that say which task it is override all of them.
void check_sources_agree(const FlagValues& values, const std::vector<GivenFlag>& given,
                         const Environment& environment);

/// Returns the flags by which one of several processes of a system joins its job (flags_of_slurm);
/// none where flags say otherwise, where MPI joins them, and where nothing is trained. The given
/// --ps M says how many of the processes are parameter servers. Throws kUsage.
std::vector<GivenFlag> flags_of_launcher(const FlagValues& values, const Environment& environment);

/// Returns where one of several processes meets the others, for launchers that tell a rank and one
/// address only; nothing where flags_of_launcher would return none, too. Throws kUsage.
std::optional<MeetingPlan> meeting_plan(const FlagValues& values, const Environment& environment);

/// Returns how users of the launcher that has placed this process (--placed) give each process the
/// job's key; empty when none has.
std::string key_hint(const FlagValues& values);

/// Returns the line that tells which task this process became and which launcher decided it; empty
/// without a launcher.
std::string placed_in_words(const FlagValues& values);

/// Throws kUsage when a system has started several processes and no flag says which task this one
/// is, or when one says this process's number and not how many there are: each would train the
/// whole job. --alone, or --launcher none, says that this is meant.
void check_one_of_several(const FlagValues& values, const Environment& environment);

/// Returns a line for the user about devices that the environment offers to a run on cores
/// ($CUDA_VISIBLE_DEVICES); empty when there is none.
std::string unused_devices(const Environment& environment);

}  // namespace paceline
