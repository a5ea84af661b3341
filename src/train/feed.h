// Functions that all feeds have in common.
#pragma once

#include <string>

#include "paceline/session.h"

namespace paceline {

/// Returns "float32 (3,4)"; "empty" of a tensor without a buffer.
std::string type_text(const Tensor& tensor);
/// Throws kInvalidArgument, naming the input, unless `given` is the shape `wanted`.
void check_shape(Value input, const Shape& wanted, const Shape& given);
/// Throws kInvalidArgument, naming the input, unless the tensor has the type and shape `wanted`.
void check_fits(Value input, const ValueType& wanted, const Tensor& tensor);
/// Copies the tensor to the input's memory. Throws kInvalidArgument when type or shape differ.
void copy_to_input(Value input, const TensorView& memory, const Tensor& tensor);
/// Throws kFailedPrecondition for an evaluation. An evaluation has no position in the data, so a
/// feed that goes by the position would give the first batch each time.
void check_trains(const Feed& feed);
/// Fills the input's memory with the standard normal values of step `step`. Throws kInvalidArgument
/// unless the input is float32.
void fill_normal(Value input, const TensorView& memory, const InputNormals& normals,
                 std::int64_t step);

}  // namespace paceline
