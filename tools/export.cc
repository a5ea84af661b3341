#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/printed.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/torch_names.h"
#include "cli/flags/command_line.h"
#include "paceline/error.h"
#include "params/variable_arrays.h"
#include "run/usage_errors.h"
#include "tools/say.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr const char* kEnding = ".safetensors";

CommandLine export_flags() {
  return {
      "paceline export",
      "Writes the variables of a checkpoint as a safetensors file for PyTorch, with the names "
      "and shapes of its modules: load_state_dict takes it. --init-from reads such a file back.",
      R"(CHECKPOINT is the --out folder of a run (then the newest whole checkpoint is taken), RUN:best,
one checkpoint's folder or its index.json.

Examples:
  paceline export run model.safetensors
  paceline export run:best model.safetensors
  paceline train mlp --steps 1000 --init-from model.safetensors)",
      {{"CHECKPOINT", "PATH", "what is exported", "Checkpoint"},
       {"FILE", "FILE", "the file to write: NAME.safetensors", "Checkpoint"},
       {"--averages", "",
        "Write the moving averages of the variables that have one, with which a model is "
        "evaluated",
        "Flags"},
       {"--only", "PATTERN", "Write only variables whose names match ('layer*')", "Flags"}}};
}

std::size_t array_of(const SavedVariable& variable, bool averages) {
  const auto slot = std::ranges::find(variable.slots, kAverageSlot, &SavedSlot::name);
  if (!averages || slot == variable.slots.end()) return 0;
  return 1 + std::size_t(slot - variable.slots.begin());
}

std::vector<TensorInfo> all_variables(const CheckpointReader& reader) {
  std::vector<TensorInfo> variables;
  for (const SavedVariable& variable : reader.index().variables) {
    variables.push_back({variable.name, variable.dtype, variable.shape});
  }
  return variables;
}

void check_averages(const CheckpointReader& reader) {
  const auto has = [](const SavedVariable& variable) { return array_of(variable, true) > 0; };
  if (std::ranges::any_of(reader.index().variables, has)) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("--averages: no variable of {} has a moving average: leave it out",
                          reader.path()));
}

// Of one variable at a time, which may be large.
void write_tensors(const CheckpointReader& reader, std::span<const TorchTensor> tensors,
                   bool averages, SafetensorsWriter& writer) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    SavedRows rows = reader.read(tensors[i].variable);
    const std::size_t array = array_of(reader.index().variable(tensors[i].variable), averages);
    const Tensor made = to_torch(tensors[i], array == 0 ? rows.value : rows.slots[array - 1]);
    writer.write(i, {static_cast<const std::byte*>(made.raw()), made.bytes()});
  }
}

}  // namespace

std::vector<CommandLine> export_lines() { return {export_flags()}; }

int export_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(export_flags(), arguments);
  if (!values) return 0;
  const std::string file = values->text("FILE");
  if (!file.ends_with(kEnding)) refuse_flag("FILE", file, "its name must end in .safetensors");
  const ChosenCheckpoint chosen =
      find_checkpoint(values->text("CHECKPOINT"), WholeCheck::kChecksums);
  for (const FoundCheckpoint& torn : chosen.passed_over) say(passed_over_text(torn) + "\n");
  const CheckpointReader reader(chosen.path);
  const bool averages = values->given("--averages");
  if (averages) check_averages(reader);
  const std::string pattern = values->given("--only") ? values->text("--only") : "*";
  const std::vector<std::string> names = reader.matching(pattern);
  // What stands beside a variable decides its form, whether it is written or not.
  std::vector<TorchTensor> tensors = torch_tensors(all_variables(reader), reader.index().modules);
  std::erase_if(tensors, [&](const TorchTensor& tensor) {
    return std::ranges::find(names, tensor.variable) == names.end();
  });
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const TorchTensor& tensor : tensors) {
    infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  SafetensorsWriter writer(file, std::move(infos), {{"format", "pt"}});
  write_tensors(reader, tensors, averages, writer);
  const WrittenFile written = writer.finish();
  say(fmt::format("{}: {} of {} in {}, {:.1f} MB\n", file,
                  counted(std::int64_t(tensors.size()), "tensor"),
                  counted(std::int64_t(names.size()), "variable"), reader.path(),
                  double(written.bytes) * 1e-6));
  return 0;
}

}  // namespace paceline
