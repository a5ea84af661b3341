// Computes y of one element type from x of another, by the rules of kernels/naive/cast.cc.
#include <fmt/format.h>

#include "kernels/cuda/cuda_work.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kCastSource = R"(
struct BFloat16 {
  unsigned short bits;
};
struct Float16 {
  unsigned short bits;
};
template <typename T>
struct Type {
  static const bool half = false, integer = false;
};
template <>
struct Type<BFloat16> {
  static const bool half = true, integer = false;
};
template <>
struct Type<Float16> {
  static const bool half = true, integer = false;
};
#define INTEGER(type, least, most, end)                     \
  template <>                                               \
  struct Type<type> {                                       \
    static const bool half = false, integer = true;         \
    __device__ static type lowest() { return least; }       \
    __device__ static type largest() { return most; }       \
    __device__ static double above() { return end; }        \
  };
INTEGER(unsigned char, 0, 255, 256.0)
INTEGER(int, -2147483647 - 1, 2147483647, 2147483648.0)
INTEGER(i64, -9223372036854775807LL - 1, 9223372036854775807LL, 9223372036854775808.0)

__device__ inline float wide(BFloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline float wide(Float16 x) {
  const unsigned sign = (unsigned)(x.bits & 0x8000) << 16;
  const unsigned exponent = (x.bits >> 10) & 0x1f, fraction = x.bits & 0x3ff;
  if (exponent == 0x1f) return __uint_as_float(sign | 0x7f800000 | (fraction << 13));
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * ((float)fraction * 5.9604644775390625e-8f);
  return __uint_as_float(sign | ((exponent + 112) << 23) | (fraction << 13));
}
template <typename T>
__device__ T wide(T x) { return x; }

__device__ inline void narrow(float value, BFloat16& to) {
  const unsigned word = __float_as_uint(value);
  to.bits = value != value ? (unsigned short)((word >> 16) | 0x40)
                           : (unsigned short)((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}
__device__ inline void narrow(float value, Float16& to) {
  const unsigned word = __float_as_uint(value), size = word & 0x7fffffff;
  const unsigned sign = (word >> 16) & 0x8000;
  unsigned bits = 0;
  if (size > 0x7f800000) {
    bits = 0x7e00;
  } else if (size >= 0x477ff000) {
    bits = 0x7c00;
  } else if (size < 0x38800000) {
    bits = __float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000;
  } else {
    bits = (size + 0xfff + ((size >> 13) & 1) - 0x38000000) >> 13;
  }
  to.bits = (unsigned short)(sign | bits);
}

template <typename W, typename To>
__device__ void convert(W value, To& to) {
  if constexpr (Type<To>::half) {
    narrow((float)value, to);
  } else if constexpr (sizeof(To) == sizeof(bool) && !Type<To>::integer) {
    to = value != W(0);
  } else if constexpr (Type<To>::integer && !Type<W>::integer && sizeof(W) != sizeof(bool)) {
    if (value != value) {
      to = 0;
    } else if ((double)value >= Type<To>::above()) {
      to = Type<To>::largest();
    } else {
      to = (double)value < (double)Type<To>::lowest() ? Type<To>::lowest() : (To)value;
    }
  } else {
    to = (To)value;
  }
}
)";

const char* type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kBFloat16:
      return "BFloat16";
    case DType::kFloat16:
      return "Float16";
    case DType::kInt32:
      return "int";
    case DType::kInt64:
      return "i64";
    case DType::kUInt8:
      return "unsigned char";
    case DType::kBool:
      return "bool";
  }
  return nullptr;
}

}  // namespace

std::optional<CudaWork> cast_work(const Node& node) {
  if (node.op().name != "cast") return {};
  const std::int64_t n = node.outputs()[0].shape.elements();
  CudaWork work;
  work.source = kCastSource + fmt::format(
                                  "extern \"C\" __global__ void cast({0}* to, const {1}* from, "
                                  "i64 n) {{\n  EACH(i, n) convert(wide(from[i]), to[i]);\n}}\n",
                                  type_of(node.outputs()[0].dtype), type_of(node.input(0).dtype()));
  work.launches = {{"cast",
                    blocks_for(n),
                    {CudaArgument::output(0), CudaArgument::input(0), CudaArgument::integer(n)}}};
  return work;
}

}  // namespace paceline::cuda
