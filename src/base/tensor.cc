#include "paceline/tensor.h"

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/copy_bytes.h"
#include "paceline/error.h"

namespace paceline {

std::size_t byte_count(DType dtype, const Shape& shape) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), std::int64_t(size_of(dtype)), &bytes)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[tensor] {} {} takes more bytes than memory has addresses",
                            name_of(dtype), shape.str()));
  }
  return std::size_t(bytes);
}

Tensor::Tensor(DType dtype, const Shape& shape) : dtype_(dtype), shape_(shape) {
  buffer_ = allocate_shared_aligned(bytes());
}

Tensor Tensor::clone() const {
  Tensor copy(dtype_, shape_);
  copy_bytes(copy.raw(), raw(), bytes());
  return copy;
}

void TensorView::throw_other_type(DType asked) const {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[tensor] {} {} read as {}", name_of(dtype),
                                                       shape.str(), name_of(asked)));
}

void Tensor::check_dtype(DType asked) const {
  if (!defined()) {
    throw Error(ErrorCode::kInvalidArgument, "[tensor] a default-made tensor has no values");
  }
  if (asked != dtype_) view().throw_other_type(asked);
}

void Tensor::check_one() const {
  if (elements() == 1) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[tensor] item() of {}: there must be one element", shape_.str()));
}

void check_element_count(const Shape& shape, std::size_t values) {
  if (std::size_t(shape.elements()) == values) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[tensor] {} values for shape {}", values, shape.str()));
}

}  // namespace paceline
