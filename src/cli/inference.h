// The command `infer`: computes results for new data with a checkpoint of a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "paceline/predictor.h"
#include "paceline/program.h"

namespace paceline {

/// The command `infer` of one model, or of a program.
struct InferenceCommand {
  std::string name;        // "paceline infer resnet", as --help shows it
  std::string trained_by;  // "paceline train resnet"
  std::string about;       // what the command does, and what a row of results has
  std::string data;        // what --data takes
  std::string examples;    // the end of --help
  bool top = true;         // it has --top
  std::string model;       // the model's name in checkpoints; empty: any model's will do
  std::vector<AnySetting> settings;
  std::function<void(const InferenceRequest&, const Settings&)> infer;
};

/// Throws kUsage, which names --out and its value `out`, when the checkpoint tells the name of its
/// model and this is not `model`. An empty `model` stands for any.
void check_model(const std::string& model, const SavedModel& saved, const std::string& out);

/// The flags, as --help and completions list them.
CommandLine inference_line(const InferenceCommand& command);
/// Reads the flags, and prints the results on standard output or writes them to --to. Returns the
/// exit status. Throws kUsage that names the flag. Also throws what `infer` throws, and what the
/// reading of the checkpoint throws.
int run_inference(const InferenceCommand& command, const std::vector<std::string>& words);

}  // namespace paceline
