#include "train/precision.h"

#include <fmt/format.h>

#include "kernels/cpu/instruction_set.h"
#include "kernels/device_kind.h"
#include "paceline/error.h"

namespace paceline {

RewriteOptions rewrite_of(const Cluster& cluster) {
  const DType precision = cluster.train.precision;
  RewriteOptions rewrite;
  rewrite.biased_products = device_kind(cluster.device.kind).biases_products;
  if (precision == DType::kFloat32) return rewrite;
  if (precision != DType::kBFloat16) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[session] cannot compute in {}: float32 or bfloat16", name_of(precision)));
  }
  rewrite.bfloat16_products = true;
  rewrite.widened_products = product_dtype(precision) != precision;
  return rewrite;
}

}  // namespace paceline
