// What all feeds have in common.
#pragma once

#include "paceline/session.h"

namespace paceline {

/// Throws kInvalidArgument, naming the input, unless the tensor has the type and shape `wanted`.
void check_fits(Value input, const ValueType& wanted, const Tensor& tensor);
/// Copies. Throws kInvalidArgument when type or shape differ.
void copy_to_input(Value input, const TensorView& memory, const Tensor& tensor);
/// Fills the input's memory. Throws kInvalidArgument unless that is float32.
void fill_normal(Value input, const TensorView& memory, const InputNormals& normals,
                 std::int64_t step);

}  // namespace paceline
