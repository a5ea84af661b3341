// The systems that start the processes of a job, and tell each of them who it is in its
// environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/flags/command_line.h"

namespace paceline {

/// Returns the text of a variable, or null when it is not set.
using Environment = std::function<const char*(const char* name)>;
/// The environment of this process.
const char* own_environment(const char* name);
/// The text of a variable; empty when it is not set, or `name` is null.
std::string_view text_in(const Environment& environment, const char* name);

/// What a system such as Slurm says of this process.
struct LaunchedBy {
  std::string_view system;       // "Slurm"
  std::optional<int> processes;  // that it has started; nothing: it does not say how many
  std::string seen;              // the variables: "SLURM_STEP_NUM_TASKS=4, SLURM_PROCID=2"
  std::string index;             // the variable with the number of this process: "SLURM_PROCID"
  std::string_view one;          // how a user of the system starts one process: "srun -n 1"
};

/// Returns what each system says that has left its variables in the environment.
std::vector<LaunchedBy> launched_by(const Environment& environment);

/// Returns the flags by which this process joins its job, as its environment gives them: those of
/// $TF_CONFIG. Throws as flags_of_tf_config does.
std::vector<GivenFlag> flags_of_environment(const Environment& environment);

/// Returns the flags by which one of several processes of srun joins its job (flags_of_slurm); none
/// where --task or --alone say otherwise, where MPI joins them, and where nothing is trained. The
/// given --ps M says how many of the processes are parameter servers. Throws kUsage.
std::vector<GivenFlag> flags_of_launcher(const FlagValues& values, const Environment& environment);

/// Returns the line that says which task the launcher has made of this process, and by what; empty
/// when there is none.
std::string placed_in_words(const FlagValues& values);

/// Throws kUsage when a system has started several processes and no flag says which task this one
/// is: each would train the whole job. --alone says that this is meant.
void check_one_of_several(const FlagValues& values, const Environment& environment);

/// Returns a line for the user about devices that the environment offers and this version does not
/// use ($CUDA_VISIBLE_DEVICES); empty when there is none.
std::string unused_devices(const Environment& environment);

}  // namespace paceline
