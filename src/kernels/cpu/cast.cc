// cast between all types: the plain loops, cut into tiles.
#include "kernels/naive/cast.h"
#include "kernels/cpu/cpu_kernels.h"

namespace paceline {

namespace {

constexpr std::int64_t kCastGrain = 16 * 1024;

class CastKernel : public Kernel {
 public:
  CastKernel(const Node& node, ThreadPool& pool)
      : cast_(cast_function(node.input(0).dtype(), node.outputs()[0].dtype)), pool_(pool) {}

  void run(const KernelCall& call) override {
    const TensorView& x = call.inputs[0];
    const TensorView& y = call.outputs[0];
    const std::int64_t from = std::int64_t(size_of(x.dtype)), to = std::int64_t(size_of(y.dtype));
    pool_.parallel_for(y.shape.elements(), kCastGrain, [&](std::int64_t begin, std::int64_t end) {
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
