#include "kernels/index_check.h"

#include <fmt/format.h>

#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

void refuse_index(const Node& node, std::string_view what, std::int32_t index, std::int64_t at,
                  std::int64_t limit) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[{}] {}: {} {} at {} is outside [0,{})", node.op().name, node.name(),
                          what, index, at, limit));
}

void check_indices(const Node& node, std::string_view what, std::span<const std::int32_t> indices,
                   std::int64_t limit) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < limit) continue;
    refuse_index(node, what, indices[i], std::int64_t(i), limit);
  }
}

}  // namespace paceline
