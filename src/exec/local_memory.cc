#include "exec/local_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

LocalMemory::LocalMemory(const Graph& graph, Device& device) {
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

void LocalMemory::reset() {
  if (memory_.size() > 0) std::memset(memory_.data(), 0, memory_.size());
}

}  // namespace paceline
