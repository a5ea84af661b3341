// Converts x (…) of one element type to y (…) of another.
#include "kernels/naive/cast.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

// Casts that C++ leaves undefined are defined here: NaN becomes 0, and a value that To cannot hold
// becomes the nearest that it can.
template <typename To, typename From>
To truncated(From value) {
  using Limits = std::numeric_limits<To>;
  // A power of two is exact in every float type; the largest integer is not.
  constexpr From kEnd = From(std::uint64_t(1) << Limits::digits);
  if (std::isnan(value)) return 0;
  if (value >= kEnd) return Limits::max();
  return value < From(Limits::min()) ? Limits::min() : static_cast<To>(value);
}

template <typename To, typename From>
To convert(From value) {
  if constexpr (kIsHalf<From>) {
    return convert<To>(float(value));
  } else if constexpr (kIsHalf<To>) {
    return To(float(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return truncated<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void run_cast(const void* x, void* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    static_cast<To*>(y)[i] = convert<To>(static_cast<const From*>(x)[i]);
  }
}

template <typename From>
CastFunction cast_from(DType to) {
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

}  // namespace

CastFunction cast_function(DType from, DType to) {
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

namespace {

class CastKernel : public Kernel {
 public:
  explicit CastKernel(const Node& node)
      : cast_(cast_function(node.input(0).dtype(), node.outputs()[0].dtype)) {
    PACELINE_CHECK(cast_ != nullptr);
  }
  void run(const KernelCall& call) override {
    cast_(call.inputs[0].data, call.outputs[0].data, call.outputs[0].shape.elements());
  }

 private:
  const CastFunction cast_;
};

std::unique_ptr<Kernel> make_cast(const Node& node, ThreadPool&) {
  return std::make_unique<CastKernel>(node);
}

}  // namespace

void add_naive_cast_kernels(KernelTable& table) { table.add("cast", &make_cast); }

}  // namespace paceline
