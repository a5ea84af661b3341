// Converts the variables of a model to the tensors of PyTorch modules, and back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors_header.h"
#include "checkpoint/safetensors_writer.h"
#include "paceline/tensor.h"

namespace paceline {

/// For each scope, the PyTorch module of its variables: "units.0" for "stage1/unit1". A module with
/// a star is a layer of an LSTM: "lstm.*_l0". A scope inside a listed one keeps its own name after
/// the module's: "units.0.conv1".
using ModuleNames = std::map<std::string, std::string>;

/// A tensor of a module's state dict, and how it is made from a variable.
struct TorchTensor {
  enum class Form : std::uint8_t {
    kSame,
    kTransposed,  // nn.Linear has (units, features)
    // The rows of w for the input, with the gates in the order i, f, g, o instead of i, g, f, o.
    kLstmInput,
    kLstmHidden,  // the rows of w for the state
    kLstmBias,    // b; nn.LSTM adds two biases
    kLstmZero,    // the second bias of nn.LSTM, zeros
    // The weight of a batch norm without gains; `variable` names its offsets.
    kOnes,
  };
  std::string name;  // "units.0.conv1.weight"
  std::string variable;
  Form form = Form::kSame;
  DType dtype = DType::kFloat32;
  Shape shape;
};

/// Returns the tensors of all variables, in the order of the variables. w and b become weight and
/// bias, and so do gains and offsets; moving_mean and moving_variance become running_mean and
/// running_var. A scope without a module keeps its name, with dots.
std::vector<TorchTensor> torch_tensors(std::span<const TensorInfo> variables,
                                       const ModuleNames& modules);

/// Returns the values of a tensor for PyTorch, made from those of its variable.
Tensor to_torch(const TorchTensor& tensor, const Tensor& variable);
/// Puts the values of a tensor into those of its variable. These must begin at zero, and are whole
/// once all its tensors were put there. Returns false for values that have no place: a weight of
/// kOnes that is not 1.
bool from_torch(const TorchTensor& tensor, const Tensor& values, const Tensor& variable);

/// Writes the tensors to the safetensors file `path`. `value_of` returns the values of a variable;
/// it is called for one variable at a time. Throws as SafetensorsWriter does.
WrittenFile write_torch_file(const std::string& path, std::span<const TorchTensor> tensors,
                             const std::function<Tensor(const std::string& variable)>& value_of);

}  // namespace paceline
