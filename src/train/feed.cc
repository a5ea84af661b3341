#include "train/feed.h"

#include <fmt/format.h>

#include "base/copy_bytes.h"
#include "paceline/error.h"
#include "train/input_normals.h"

namespace paceline {

void Feed::check_type(Value input, DType asked) {
  if (input.dtype() == asked) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[feed] input '{}' is {}, and was asked for as {}", input.name(),
                          input.type().str(), name_of(asked)));
}

std::string type_text(const Tensor& tensor) {
  return tensor.defined() ? ValueType{tensor.dtype(), tensor.shape()}.str() : "empty";
}

namespace {

[[noreturn]] void refuse(Value input, const ValueType& wanted, const std::string& given) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[feed] input '{}' is {}, the tensor is {}",
                                                       input.name(), wanted.str(), given));
}

}  // namespace

void check_shape(Value input, const Shape& wanted, const Shape& given) {
  const DType dtype = input.dtype();
  if (wanted != given) refuse(input, {dtype, wanted}, ValueType{dtype, given}.str());
}

void check_fits(Value input, const ValueType& wanted, const Tensor& tensor) {
  if (tensor.defined() && ValueType{tensor.dtype(), tensor.shape()} == wanted) return;
  refuse(input, wanted, type_text(tensor));
}

void copy_to_input(Value input, const TensorView& memory, const Tensor& tensor) {
  check_fits(input, {memory.dtype, memory.shape}, tensor);
  copy_bytes(memory.data, tensor.raw(), tensor.bytes());
}

void check_trains(const Feed& feed) {
  if (!feed.evaluates()) return;
  throw Error(ErrorCode::kFailedPrecondition,
              "[feed] an evaluation has no position in the data, so each one would get the first "
              "batch: ArrayBatches and PipelineFeed give it batches by fill()");
}

void fill_normal(Value input, const TensorView& memory, const InputNormals& normals,
                 std::int64_t step) {
  if (memory.dtype != DType::kFloat32) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[feed] normal values are float32, input '{}' is {}", input.name(),
                            name_of(memory.dtype)));
  }
  normals.fill({memory.as<float>(), std::size_t(memory.shape.elements())}, input, step);
}

}  // namespace paceline
