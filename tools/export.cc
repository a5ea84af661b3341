#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/printed.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/torch_names.h"
#include "cli/flags/command_line.h"
#include "models/model.h"
#include "paceline/error.h"
#include "params/variable_arrays.h"
#include "run/usage_errors.h"
#include "tools/say.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr const char* kTorchEnding = ".safetensors";
constexpr const char* kOnnxEnding = ".onnx";

CommandLine export_flags() {
  return {
      "paceline export",
      "Writes what a run has trained for other programs. NAME.safetensors has the variables with "
      "the names and shapes of PyTorch's modules: load_state_dict takes it, and --init-from reads "
      "it back. NAME.onnx has the whole model, as ONNX: from images to the probabilities of their "
      "classes, for example. Its batch may have any size.",
      R"(CHECKPOINT is the --out folder of a run (then the newest whole checkpoint is taken), RUN:best,
one checkpoint's folder or its index.json.

Examples:
  paceline export run model.safetensors
  paceline export run:best model.onnx
  paceline train mlp --steps 1000 --init-from model.safetensors)",
      {{"CHECKPOINT", "PATH", "what is exported", "Checkpoint"},
       {"FILE", "FILE", "the file to write: NAME.safetensors or NAME.onnx", "Checkpoint"},
       {"--averages", "",
        "Write the moving averages of the variables that have one, with which a model is "
        "evaluated",
        "Flags"},
       {"--only", "PATTERN", "Write only variables whose names match ('layer*'), as safetensors",
        "Flags"}}};
}

std::vector<TensorInfo> all_variables(const CheckpointReader& reader) {
  std::vector<TensorInfo> variables;
  for (const SavedVariable& variable : reader.index().variables) {
    variables.push_back({variable.name, variable.dtype, variable.shape});
  }
  return variables;
}

void check_averages(const CheckpointReader& reader) {
  const auto has = [](const SavedVariable& variable) {
    return variable.array_of_slot(kAverageSlot) > 0;
  };
  if (std::ranges::any_of(reader.index().variables, has)) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("--averages: no variable of {} has a moving average: leave it out",
                          reader.path()));
}

void write_for_torch(const std::string& file, const CheckpointReader& reader,
                     const FlagValues& values) {
  const std::string pattern = values.given("--only") ? values.text("--only") : "*";
  const std::vector<std::string> names = reader.matching(pattern);
  // The form of a tensor depends on the variables beside it, even if these are not written.
  std::vector<TorchTensor> tensors = torch_tensors(all_variables(reader), reader.index().modules);
  std::erase_if(tensors, [&](const TorchTensor& tensor) {
    return std::ranges::find(names, tensor.variable) == names.end();
  });
  const bool averages = values.given("--averages");
  const WrittenFile written = write_torch_file(file, tensors, [&](const std::string& variable) {
    SavedRows rows = reader.read(variable);
    const SavedVariable& saved = reader.index().variable(variable);
    const std::size_t array = averages ? saved.array_of_slot(kAverageSlot) : 0;
    return array == 0 ? rows.value : rows.slots[array - 1];
  });
  say(fmt::format("{}: {} of {} in {}, {:.1f} MB\n", file,
                  counted(std::int64_t(tensors.size()), "tensor"),
                  counted(std::int64_t(names.size()), "variable"), reader.path(),
                  double(written.bytes) * 1e-6));
}

// Returns the inference of the model whose training has saved the checkpoint.
OnnxModel inference_of(const CheckpointReader& reader) {
  const CheckpointIndex& index = reader.index();
  models::SavedShapes shapes;
  for (const SavedVariable& variable : index.variables) shapes[variable.name] = variable.shape;
  const auto note = index.notes.find("model");
  const std::string name = note == index.notes.end() ? "" : note->second;
  const models::Model* const model = models::find_model(name);
  if (model == nullptr) {
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("{} is of {}, not of `paceline train`, so its graph is not known: a "
                            "program writes its own model as ONNX by write_onnx",
                            reader.path(), name.empty() ? "no named model" : name));
  }
  std::optional<OnnxModel> found = model->onnx_model(shapes);
  if (found) return *std::move(found);
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("{} is of {}, which computes nothing of use once it is trained",
                          reader.path(), name));
}

// Returns the facts of a checkpoint that the ONNX file keeps as metadata; lists of names are JSON.
std::map<std::string, std::string> metadata_of(const CheckpointIndex& index) {
  std::map<std::string, std::string> texts = index.notes;
  texts["global_step"] = std::to_string(index.global_step);
  for (const auto& [kind, names] : index.data) texts[kind] = nlohmann::json(names).dump();
  return texts;
}

void write_as_onnx(const std::string& file, const CheckpointReader& reader,
                   const FlagValues& values) {
  if (values.given("--only")) {
    refuse_flags("--only: an ONNX file has the whole model: leave it out");
  }
  OnnxModel model = inference_of(reader);
  model.metadata = metadata_of(reader.index());
  const OnnxFile written =
      write_onnx(file, model, reader.path(),
                 values.given("--averages") ? EvaluateWith::kAverages : EvaluateWith::kVariables);
  std::string text =
      fmt::format("{}: {} of {}, {:.1f} MB\n", file, counted(written.variables, "variable"),
                  reader.path(), double(written.bytes) * 1e-6);
  for (const std::string& input : written.inputs) text += fmt::format("  input   {}\n", input);
  for (const std::string& output : written.outputs) text += fmt::format("  output  {}\n", output);
  say(text);
}

}  // namespace

std::vector<CommandLine> export_lines() { return {export_flags()}; }

int export_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(export_flags(), arguments);
  if (!values) return 0;
  const std::string file = values->text("FILE");
  const bool onnx = file.ends_with(kOnnxEnding);
  if (!onnx && !file.ends_with(kTorchEnding)) {
    refuse_flag("FILE", file, "its name must end in .safetensors or .onnx");
  }
  const ChosenCheckpoint chosen =
      find_checkpoint(values->text("CHECKPOINT"), WholeCheck::kChecksums);
  for (const FoundCheckpoint& torn : chosen.passed_over) say(passed_over_text(torn) + "\n");
  const CheckpointReader reader(chosen.path);
  if (values->given("--averages")) check_averages(reader);
  (onnx ? write_as_onnx : write_for_torch)(file, reader, *values);
  return 0;
}

}  // namespace paceline
