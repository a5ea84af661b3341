// y (…) of one element type = x (…) of another.
#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

template <typename To, typename From>
To convert(From value) {
  if constexpr (kIsHalf<From>) {
    return convert<To>(float(value));
  } else if constexpr (kIsHalf<To>) {
    return To(float(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void run_cast(const Node&, const KernelCall& call) {
  const From* x = call.inputs[0].as<From>();
  To* y = call.outputs[0].as<To>();
  for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) y[i] = convert<To>(x[i]);
}

template <typename From>
PlainKernel::Function cast_from(DType to) {
  switch (to) {
    case DType::kFloat32:
      return &run_cast<From, float>;
    case DType::kFloat64:
      return &run_cast<From, double>;
    case DType::kBFloat16:
      return &run_cast<From, BFloat16>;
    case DType::kFloat16:
      return &run_cast<From, Float16>;
    case DType::kInt32:
      return &run_cast<From, std::int32_t>;
    case DType::kInt64:
      return &run_cast<From, std::int64_t>;
    case DType::kUInt8:
      return &run_cast<From, std::uint8_t>;
    case DType::kBool:
      return &run_cast<From, bool>;
  }
  return nullptr;
}

PlainKernel::Function cast_function(DType from, DType to) {
  switch (from) {
    case DType::kFloat32:
      return cast_from<float>(to);
    case DType::kFloat64:
      return cast_from<double>(to);
    case DType::kBFloat16:
      return cast_from<BFloat16>(to);
    case DType::kFloat16:
      return cast_from<Float16>(to);
    case DType::kInt32:
      return cast_from<std::int32_t>(to);
    case DType::kInt64:
      return cast_from<std::int64_t>(to);
    case DType::kUInt8:
      return cast_from<std::uint8_t>(to);
    case DType::kBool:
      return cast_from<bool>(to);
  }
  return nullptr;
}

std::unique_ptr<Kernel> make_cast(const Node& node, ThreadPool&) {
  const PlainKernel::Function function =
      cast_function(node.input(0).dtype(), node.outputs()[0].dtype);
  return std::make_unique<PlainKernel>(node, function);
}

}  // namespace

void add_naive_cast_kernels(KernelTable& table) { table.add("cast", &make_cast); }

}  // namespace paceline
