#include "kernels/index_check.h"

#include <fmt/format.h>

#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

void check_indices(const Node& node, std::string_view what, std::span<const std::int32_t> indices,
                   std::int64_t limit) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < limit) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[{}] {}: {} {} at {} is outside [0,{})", node.op().name, node.name(),
                            what, indices[i], i, limit));
  }
}

}  // namespace paceline
