// Takes the values of a model's variables from a checkpoint or a safetensors file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/torch_names.h"
#include "exec/parameter_store.h"
#include "paceline/session.h"

namespace paceline {

/// True when one of these shell patterns matches the name, or when there are no patterns.
bool is_wanted(const std::string& name, const std::vector<std::string>& patterns);

/// What is taken of a checkpoint.
struct TakenValues {
  std::vector<std::string> patterns = {};  // only variables that match; empty: all
  /// The names of modules in a file with tensors of PyTorch modules.
  ModuleNames modules = {};
  // kAverages: the moving average of each variable that has one in the checkpoint.
  EvaluateWith with = EvaluateWith::kVariables;
};
/// Takes values into `values`, by variable. Returns a line for each variable that the checkpoint
/// does not have, or has in another shape or type, with both sides; the values of those variables
/// stay as they are. Floating-point numbers are converted to the variable's type.
std::vector<std::string> take_values(std::vector<VariableState>& values,
                                     std::span<const VariableSpec> specs,
                                     const CheckpointReader& reader, const TakenValues& taken);

/// Throws kFailedPrecondition, "PATH is a checkpoint of another model", with the lines.
[[noreturn]] void refuse_other_model(const std::string& path, std::span<const std::string> lines);

}  // namespace paceline
