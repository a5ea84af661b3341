#include "train/saved_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "paceline/error.h"
#include "params/variable_arrays.h"
#include "train/initial_values.h"

namespace paceline {
namespace {

// Floating-point numbers are read in any precision that another program saved.
bool fits(const SavedVariable& saved, DType dtype, const Shape& shape) {
  return saved.shape == shape &&
         (saved.dtype == dtype || (is_floating(saved.dtype) && is_floating(dtype)));
}

std::string shapes_text(const std::string& name, const SavedVariable& saved, const Shape& shape,
                        DType dtype) {
  return fmt::format("{}: {} {} in the checkpoint, {} {} in the model", name, saved.shape.str(),
                     name_of(saved.dtype), shape.str(), name_of(dtype));
}

/// The values of variables that a file has as tensors of PyTorch modules.
class TorchValues {
 public:
  TorchValues(std::span<const VariableSpec> specs, const ModuleNames& modules,
              const CheckpointReader& reader)
      : reader_(reader) {
    std::vector<TensorInfo> variables;
    for (const VariableSpec& spec : specs) variables.push_back({spec.name, spec.dtype, spec.shape});
    tensors_ = torch_tensors(variables, modules);
  }
  /// True when the file has the value. A batch norm without gains needs no weight in the file.
  bool has(const VariableSpec& spec) const {
    return std::ranges::all_of(tensors_, [&](const TorchTensor& tensor) {
      return tensor.variable != spec.name || tensor.form == TorchTensor::Form::kOnes ||
             find(tensor) != nullptr;
    });
  }
  /// Takes the value. Returns why it does not fit; an empty text if it fits.
  std::string take(const VariableSpec& spec, Tensor& value) const {
    const Tensor made(spec.dtype, spec.shape);
    for (const TorchTensor& tensor : tensors_) {
      if (tensor.variable != spec.name) continue;
      const SavedVariable* const saved = find(tensor);
      if (saved == nullptr) continue;
      if (!fits(*saved, tensor.dtype, tensor.shape)) {
        return shapes_text(tensor.name, *saved, tensor.shape, tensor.dtype);
      }
      if (!from_torch(tensor, as_type(reader_.read(tensor.name).value, tensor.dtype), made)) {
        return fmt::format("{}: not all ones in the checkpoint, and the model has no such weight",
                           tensor.name);
      }
    }
    value = made;
    return "";
  }

 private:
  const SavedVariable* find(const TorchTensor& tensor) const {
    const auto& saved = reader_.index().variables;
    const auto found = std::ranges::find(saved, tensor.name, &SavedVariable::name);
    return found == saved.end() ? nullptr : &*found;
  }

  const CheckpointReader& reader_;
  std::vector<TorchTensor> tensors_;
};

Tensor value_of(const CheckpointReader& reader, const SavedVariable& saved, EvaluateWith with) {
  SavedRows rows = reader.read(saved.name);
  const auto slot = std::ranges::find(saved.slots, kAverageSlot, &SavedSlot::name);
  const bool averaged = with == EvaluateWith::kAverages && slot != saved.slots.end();
  return averaged ? rows.slots[std::size_t(slot - saved.slots.begin())] : rows.value;
}

}  // namespace

bool is_wanted(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

std::vector<std::string> take_values(std::vector<VariableState>& values,
                                     std::span<const VariableSpec> specs,
                                     const CheckpointReader& reader, const TakenValues& taken) {
  std::vector<std::string> lines;
  const TorchValues torch(specs, taken.modules, reader);
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    if (!is_wanted(spec.name, taken.patterns)) continue;
    const auto& saved = reader.index().variables;
    const auto found = std::ranges::find(saved, spec.name, &SavedVariable::name);
    if (found == saved.end() && torch.has(spec)) {
      const std::string why = torch.take(spec, values[id].value);
      if (!why.empty()) lines.push_back(why);
    } else if (found == saved.end()) {
      lines.push_back(fmt::format("{}: only in the model", spec.name));
    } else if (!fits(*found, spec.dtype, spec.shape)) {
      lines.push_back(shapes_text(spec.name, *found, spec.shape, spec.dtype));
    } else {
      values[id].value = as_type(value_of(reader, *found, taken.with), spec.dtype);
    }
  }
  return lines;
}

void refuse_other_model(const std::string& path, std::span<const std::string> lines) {
  throw Error(
      ErrorCode::kFailedPrecondition,
      fmt::format("{} is a checkpoint of another model:\n  {}", path, fmt::join(lines, "\n  ")));
}

}  // namespace paceline
