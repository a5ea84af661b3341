// cast between all types, cut into tiles: vectorised between float32 and the 16-bit floats, and
// plain loops for other types.
#include "kernels/naive/cast.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/vector_cast.h"

namespace paceline {

namespace {

template <typename From, typename To>
void run_vector_cast(const void* x, void* y, std::int64_t n) {
  vector_cast(static_cast<const From*>(x), static_cast<To*>(y), n);
}

CastFunction fast_cast_function(DType from, DType to) {
  constexpr DType kFloat = DType::kFloat32;
  if (from == kFloat && to == DType::kBFloat16) return &run_vector_cast<float, BFloat16>;
  if (from == kFloat && to == DType::kFloat16) return &run_vector_cast<float, Float16>;
  if (from == DType::kBFloat16 && to == kFloat) return &run_vector_cast<BFloat16, float>;
  if (from == DType::kFloat16 && to == kFloat) return &run_vector_cast<Float16, float>;
  return cast_function(from, to);
}

class CastKernel : public Kernel {
 public:
  CastKernel(const Node& node, ThreadPool& pool)
      : cast_(fast_cast_function(node.input(0).dtype(), node.outputs()[0].dtype)), pool_(pool) {}

  void run(const KernelCall& call) override {
    const TensorView& x = call.inputs[0];
    const TensorView& y = call.outputs[0];
    const std::int64_t from = std::int64_t(size_of(x.dtype)), to = std::int64_t(size_of(y.dtype));
    pool_.parallel_for(
        y.shape.elements(), kElementsGrain, [&](std::int64_t begin, std::int64_t end) {
          cast_(x.as<std::byte>() + begin * from, y.as<std::byte>() + begin * to, end - begin);
        });
  }

 private:
  const CastFunction cast_;
  ThreadPool& pool_;
};

}  // namespace

void add_cpu_cast_kernels(KernelTable& table) { table.add("cast", &make_kernel_of<CastKernel>); }

}  // namespace paceline
