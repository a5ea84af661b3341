#include "kernels/cpu/plain_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <dnnl.hpp>

#include "kernels/cpu/one_thread.h"
#include "paceline/error.h"
#include "paceline/tensor.h"

namespace paceline {
namespace {

Tensor ones(DType dtype, std::int64_t n) {
  Tensor tensor(dtype, {n, n});
  if (dtype == DType::kFloat32) std::ranges::fill(tensor.data<float>(), 1.0f);
  if (dtype == DType::kBFloat16) std::ranges::fill(tensor.data<BFloat16>(), BFloat16(1.0f));
  return tensor;
}

}  // namespace

struct PlainProduct::State {
  State(DType dtype, std::int64_t side)
      : n(side), a(ones(dtype, n)), b(ones(dtype, n)), c(DType::kFloat32, {n, n}) {
    const auto plain = dnnl::memory::format_tag::ab;
    const auto type =
        dtype == DType::kBFloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    const dnnl::memory::desc operand({n, n}, type, plain);
    const dnnl::memory::desc result({n, n}, dnnl::memory::data_type::f32, plain);
    product = dnnl::matmul({dnnl::matmul::desc(operand, operand, result), engine});
    memory = {{DNNL_ARG_SRC, {operand, engine, a.raw()}},
              {DNNL_ARG_WEIGHTS, {operand, engine, b.raw()}},
              {DNNL_ARG_DST, {result, engine, c.raw()}}};
  }

  std::int64_t n;
  Tensor a, b, c;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul product;
  std::unordered_map<int, dnnl::memory> memory;
};

PlainProduct::PlainProduct(DType dtype, std::int64_t n) {
  const OneThread guard;
  try {
    state_ = std::make_unique<State>(dtype, n);
  } catch (const dnnl::error& error) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("oneDNN multiplies no {} here: {}", name_of(dtype), error.what()));
  }
}

PlainProduct::~PlainProduct() = default;
PlainProduct::PlainProduct(PlainProduct&&) noexcept = default;

void PlainProduct::run() {
  const OneThread guard;
  state_->product.execute(state_->stream, state_->memory);
}

double PlainProduct::flops() const {
  const auto n = double(state_->n);
  return 2 * n * n * n;
}

std::span<const float> PlainProduct::result() const { return state_->c.data<float>(); }

}  // namespace paceline
