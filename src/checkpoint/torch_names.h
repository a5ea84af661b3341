// The variables of a model as the tensors of PyTorch modules, and back.
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

/// The PyTorch module of the variables in a scope: "stage1/unit1" is "units.0". A name with a star
/// is that of a layer of an LSTM: "lstm.*_l0". What a scope within one is called follows from its
/// own name.
using ModuleNames = std::map<std::string, std::string>;

/// A tensor of a module's state dict, and how it follows from a variable.
struct TorchTensor {
  enum class Form : std::uint8_t {
    kSame,
    kTransposed,  // nn.Linear has (units, features)
    kLstmInput,   // the rows of the input; gates i, f, g, o in place of i, g, f, o
    kLstmHidden,  // the rows of the state
    kLstmBias,    // nn.LSTM adds two biases: this one
    kLstmZero,    // and this one, of zeros
    kOnes,        // the weight of a batch norm that has no gains: `variable` are its offsets
  };
  std::string name;  // "units.0.conv1.weight"
  std::string variable;
  Form form = Form::kSame;
  DType dtype = DType::kFloat32;
  Shape shape;
};

/// Returns the tensors of all variables, in their order. w and b become weight and bias, and so do
/// gains and offsets; moving_mean and moving_variance become running_mean and running_var. A scope
/// without a module keeps its name, with dots.
std::vector<TorchTensor> torch_tensors(std::span<const TensorInfo> variables,
                                       const ModuleNames& modules);

/// Returns the values of such a tensor, from those of its variable.
Tensor to_torch(const TorchTensor& tensor, const Tensor& variable);
/// Puts the values of a tensor into those of its variable, which begin at zero and are whole once
/// all of its tensors were put there. Returns false when they cannot stand there: a weight of
/// kOnes that is not 1.
bool from_torch(const TorchTensor& tensor, const Tensor& values, const Tensor& variable);

/// Writes the tensors to the safetensors file `path`; `value_of` gives the values of a variable,
/// and is asked for one at a time. Throws as SafetensorsWriter does.
WrittenFile write_torch_file(const std::string& path, std::span<const TorchTensor> tensors,
                             const std::function<Tensor(const std::string& variable)>& value_of);

}  // namespace paceline
