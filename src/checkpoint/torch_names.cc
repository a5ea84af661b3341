#include "checkpoint/torch_names.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

namespace paceline {
namespace {

using Form = TorchTensor::Form;

constexpr char kLstmStar = '*';
constexpr std::pair<std::string_view, std::string_view> kLeaves[] = {
    {"w", "weight"},
    {"b", "bias"},
    {"gains", "weight"},
    {"offsets", "bias"},
    {"moving_mean", "running_mean"},
    {"moving_variance", "running_var"}};
// This permutation turns either order of the gates into the other.
constexpr std::int64_t kGates = 4;
constexpr std::int64_t kGateOf[kGates] = {0, 2, 1, 3};

std::string torch_leaf(std::string_view leaf) {
  const auto found =
      std::ranges::find(kLeaves, leaf, &std::pair<std::string_view, std::string_view>::first);
  return std::string(found == std::end(kLeaves) ? leaf : found->second);
}

// Returns the module of a scope: that of the longest enclosing scope that has one, with the rest of
// the scope's name.
std::string module_of(const std::string& scope, const ModuleNames& modules) {
  for (std::size_t end = scope.size(); end != std::string::npos && end > 0;
       end = scope.rfind('/', end - 1)) {
    const auto named = modules.find(scope.substr(0, end));
    if (named == modules.end()) continue;
    std::string rest = scope.substr(end);
    std::ranges::replace(rest, '/', '.');
    return named->second + rest;
  }
  std::string name = scope;
  std::ranges::replace(name, '/', '.');
  return name;
}

std::string starred(const std::string& module, std::string_view leaf) {
  std::string name = module;
  return name.replace(name.find(kLstmStar), 1, leaf);
}

/// Adds the tensors of variables, one variable after the other.
class Naming {
 public:
  Naming(std::span<const TensorInfo> variables, const ModuleNames& modules) : modules_(modules) {
    for (const TensorInfo& variable : variables) names_.insert(variable.name);
  }

  void add(const TensorInfo& variable) {
    const std::size_t slash = variable.name.rfind('/');
    const bool is_module = slash == std::string::npos && modules_.contains(variable.name);
    const std::string scope = is_module ? variable.name : variable.name.substr(0, slash);
    const std::string leaf =
        is_module || slash == std::string::npos ? "w" : variable.name.substr(slash + 1);
    if (!is_module && slash == std::string::npos) {
      return put(variable, variable.name, Form::kSame, variable.shape);
    }
    const std::string module = module_of(scope, modules_);
    if (module.find(kLstmStar) != std::string::npos) return add_lstm(variable, module, leaf);
    const bool transposed = !is_module && leaf == "w" && variable.shape.rank() == 2;
    put(variable, module + "." + torch_leaf(leaf), transposed ? Form::kTransposed : Form::kSame,
        transposed ? Shape{variable.shape[1], variable.shape[0]} : variable.shape);
    const bool normalises = leaf == "offsets" && variable.dtype == DType::kFloat32 &&
                            names_.contains(scope + "/moving_mean");
    if (normalises && !names_.contains(scope + "/gains")) {
      put(variable, module + ".weight", Form::kOnes, variable.shape);
    }
  }
  std::vector<TorchTensor> take() { return std::move(tensors_); }

 private:
  void add_lstm(const TensorInfo& variable, const std::string& module, const std::string& leaf) {
    const Shape& shape = variable.shape;
    if (leaf == "w" && shape.rank() == 2) {
      const std::int64_t columns = shape[1], hidden = columns / kGates;
      put(variable, starred(module, "weight_ih"), Form::kLstmInput, {columns, shape[0] - hidden});
      put(variable, starred(module, "weight_hh"), Form::kLstmHidden, {columns, hidden});
    } else if (leaf == "b") {
      put(variable, starred(module, "bias_ih"), Form::kLstmBias, shape);
      put(variable, starred(module, "bias_hh"), Form::kLstmZero, shape);
    } else {
      put(variable, starred(module, torch_leaf(leaf)), Form::kSame, shape);
    }
  }
  void put(const TensorInfo& variable, std::string name, Form form, const Shape& shape) {
    tensors_.push_back({std::move(name), variable.name, form, variable.dtype, shape});
  }

  const ModuleNames& modules_;
  std::set<std::string> names_;
  std::vector<TorchTensor> tensors_;
};

/// The place in the variable that one element of PyTorch's matrix has.
struct Place {
  std::int64_t row, column;
};

Place place_of(const TorchTensor& tensor, const Shape& variable, std::int64_t row,
               std::int64_t column) {
  if (tensor.form == Form::kTransposed) return {column, row};
  const std::int64_t hidden = variable[-1] / kGates;
  const std::int64_t unit = kGateOf[row / hidden] * hidden + row % hidden;
  if (tensor.form == Form::kLstmBias) return {0, unit};
  const std::int64_t first = tensor.form == Form::kLstmHidden ? variable[0] - hidden : 0;
  return {first + column, unit};
}

// Calls `copy` for each element of the tensor and the element of the variable that corresponds to
// it.
template <typename Copy>
void for_each_element(const TorchTensor& tensor, const Shape& variable, Copy&& copy) {
  const std::int64_t columns = tensor.shape.rank() == 2 ? tensor.shape[1] : 1;
  const std::int64_t width = variable[-1];
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) {
    const Place place = place_of(tensor, variable, i / columns, i % columns);
    copy(std::size_t(i), std::size_t(place.row * width + place.column));
  }
}

bool all_ones(const Tensor& values) {
  return values.dtype() != DType::kFloat32 ||
         std::ranges::all_of(values.data<float>(), [](float value) { return value == 1; });
}

}  // namespace

std::vector<TorchTensor> torch_tensors(std::span<const TensorInfo> variables,
                                       const ModuleNames& modules) {
  Naming naming(variables, modules);
  for (const TensorInfo& variable : variables) naming.add(variable);
  return naming.take();
}

Tensor to_torch(const TorchTensor& tensor, const Tensor& variable) {
  if (tensor.form == Form::kSame) return variable;
  Tensor made(tensor.dtype, tensor.shape);
  if (tensor.form == Form::kLstmZero) return made;
  if (tensor.form == Form::kOnes) {
    std::ranges::fill(made.data<float>(), 1.0f);
    return made;
  }
  const std::size_t size = size_of(tensor.dtype);
  auto* const to = static_cast<std::byte*>(made.raw());
  const auto* const from = static_cast<const std::byte*>(variable.raw());
  for_each_element(tensor, variable.shape(), [&](std::size_t here, std::size_t there) {
    std::memcpy(to + here * size, from + there * size, size);
  });
  return made;
}

bool from_torch(const TorchTensor& tensor, const Tensor& values, const Tensor& variable) {
  if (tensor.form == Form::kOnes) return all_ones(values);
  const std::size_t size = size_of(tensor.dtype);
  auto* const to = static_cast<std::byte*>(variable.raw());
  const auto* const from = static_cast<const std::byte*>(values.raw());
  if (tensor.form == Form::kSame) {
    std::memcpy(to, from, variable.bytes());
  } else if (tensor.form == Form::kLstmBias || tensor.form == Form::kLstmZero) {
    // The variable is the sum of both biases.
    TorchTensor of_sum = tensor;
    of_sum.form = Form::kLstmBias;
    const std::span<float> sum = variable.data<float>(), part = values.data<float>();
    for_each_element(of_sum, variable.shape(),
                     [&](std::size_t here, std::size_t there) { sum[there] += part[here]; });
  } else {
    for_each_element(tensor, variable.shape(), [&](std::size_t here, std::size_t there) {
      std::memcpy(to + there * size, from + here * size, size);
    });
  }
  return true;
}

WrittenFile write_torch_file(const std::string& path, std::span<const TorchTensor> tensors,
                             const std::function<Tensor(const std::string& variable)>& value_of) {
  std::vector<TensorInfo> infos;
  for (const TorchTensor& tensor : tensors) {
    infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  SafetensorsWriter writer(path, std::move(infos), {{"format", "pt"}});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor made = to_torch(tensors[i], value_of(tensors[i].variable));
    writer.write(i, {static_cast<const std::byte*>(made.raw()), made.bytes()});
  }
  return writer.finish();
}

}  // namespace paceline
