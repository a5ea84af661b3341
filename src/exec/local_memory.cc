#include "exec/local_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

LocalMemory::LocalMemory(const Graph& graph, Device& device) : device_(device) {
  std::size_t bytes = 0;
  std::map<std::string, std::size_t> offsets;
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "local") continue;
    const ValueType& type = node->outputs()[0];
    const TensorView view{nullptr, type.dtype, type.shape};
    views_[node->name()] = view;
    offsets[node->name()] = bytes;
    bytes += round_up(std::max<std::size_t>(view.bytes(), 1), kBufferAlignment);
  }
  memory_ = device.allocate(bytes);
  for (auto& [name, view] : views_) view.data = memory_.data() + offsets[name];
}

TensorView LocalMemory::view(std::string_view name) const {
  const auto found = views_.find(name);
  if (found != views_.end()) return found->second;
  throw Error(ErrorCode::kNotFound, fmt::format("[locals] no local variable {}", name));
}

Tensor LocalMemory::read(std::string_view name) const {
  const TensorView from = view(name);
  Tensor tensor(from.dtype, from.shape);
  device_.download(tensor.raw(), from.data, from.bytes());
  device_.synchronize();
  return tensor;
}

void LocalMemory::write(std::string_view name, const Tensor& value) {
  const TensorView to = view(name);
  PACELINE_CHECK(to.bytes() == value.bytes());
  device_.upload(to.data, value.raw(), value.bytes());
  device_.synchronize();
}

void LocalMemory::reset() {
  if (memory_.size() == 0) return;
  const Buffer zeros(memory_.size());
  device_.upload(memory_.data(), zeros.data(), zeros.size());
  device_.synchronize();
}

}  // namespace paceline
