#include "train/step_feed.h"

#include "base/copy_bytes.h"
#include "base/philox.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// Tasks must not draw the same numbers: odd, so that no two tasks share a seed.
constexpr std::uint64_t kTaskStride = 0x9e3779b97f4a7c15;

}  // namespace

Feed& StepFeed::normal(Value input) {
  const TensorView memory = view(input);
  if (memory.dtype != DType::kFloat32) {
    throw Error(ErrorCode::kInvalidArgument, "[feed] normal values are float32, input '" +
                                                 input.name() + "' is " +
                                                 std::string(name_of(memory.dtype)));
  }
  const std::uint64_t seed = identity_.seed + kTaskStride * std::uint64_t(identity_.task);
  normals_.fill({memory.as<float>(), std::size_t(memory.shape.elements())},
                random_key(seed, input.node().name()), std::uint64_t(identity_.step));
  return *this;
}

Feed& StepFeed::set(Value input, const Tensor& tensor) {
  const TensorView memory = view(input);
  if (memory.dtype != tensor.dtype() || memory.shape != tensor.shape()) {
    const ValueType given{tensor.dtype(), tensor.shape()}, wanted{memory.dtype, memory.shape};
    throw Error(ErrorCode::kInvalidArgument, "[feed] input '" + input.name() + "' is " +
                                                 wanted.str() + ", the tensor is " + given.str());
  }
  copy_bytes(memory.data, tensor.raw(), tensor.bytes());
  return *this;
}

}  // namespace paceline
