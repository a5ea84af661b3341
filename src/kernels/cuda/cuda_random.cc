// Random ops. They draw the same random words as the host's kernels (kernels/random_stream.h).
#include "kernels/cuda/cuda_work.h"
#include "kernels/random_stream.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kRandomSource = R"(
// The random word of an element.
__device__ inline unsigned word_of(i64 i, u64 key, u64 high) {
  unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  const u64 block = (u64)i / 4;
  unsigned c0 = (unsigned)block, c1 = (unsigned)(block >> 32);
  unsigned c2 = (unsigned)high, c3 = (unsigned)(high >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0;
    c1 = (unsigned)p1;
    c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
    c3 = (unsigned)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return i % 4 == 0 ? c0 : i % 4 == 1 ? c1 : i % 4 == 2 ? c2 : c3;
}
// In [0, 1).
__device__ inline float unit(unsigned word) { return (float)(word >> 8) * 5.9604644775390625e-8f; }

extern "C" __global__ void dropout(float* y, const float* x, i64 n, float keep, float factor,
                                   u64 key, u64 high) {
  EACH(i, n) y[i] = unit(word_of(i, key, high)) < keep ? x[i] * factor : 0.0f;
}
extern "C" __global__ void random_uniform(float* y, i64 n, float low, float high_end, u64 key,
                                          u64 high) {
  EACH(i, n) {
    const float value = low + (high_end - low) * unit(word_of(i, key, high));
    y[i] = value < high_end || low == high_end ? value : nextafterf(high_end, low);
  }
}
extern "C" __global__ void random_normal(float* y, i64 n, float mean, float stddev, u64 key,
                                         u64 high) {
  EACH(i, n) {
    const i64 pair = i / 2 * 2;
    const float radius = sqrtf(-2.0f * logf(1.0f - unit(word_of(pair, key, high))));
    const float angle = 2.0f * 3.14159265358979323846f * unit(word_of(pair + 1, key, high));
    y[i] = mean + stddev * (radius * (i % 2 == 0 ? cosf(angle) : sinf(angle)));
  }
}
extern "C" __global__ void random_integers(int* y, i64 n, i64 low, u64 range, u64 key, u64 high) {
  EACH(i, n) y[i] = (int)(low + (i64)((word_of(i, key, high) * range) >> 32));
}
)";

using A = CudaArgument;

}  // namespace

std::optional<CudaWork> random_work(const Node& node) {
  const std::string& op = node.op().name;
  const Attributes& attributes = node.attributes();
  const std::int64_t n = node.outputs()[0].shape.elements();
  const auto work = [&](const char* function, std::vector<A> arguments) {
    arguments.push_back(A::random_key(std::string(stream_of(node))));
    arguments.push_back(A::random_step());
    return CudaWork{kRandomSource, {{function, blocks_for(n), std::move(arguments)}}, 0, {}};
  };
  if (op == "dropout") {
    const double keep = attributes.get<double>("keep");
    return work("dropout",
                {A::output(0), A::input(0), A::integer(n), A::number(keep), A::number(1 / keep)});
  }
  if (op == "random_uniform") {
    return work("random_uniform",
                {A::output(0), A::integer(n), A::number(attributes.get<double>("low")),
                 A::number(attributes.get<double>("high"))});
  }
  if (op == "random_normal") {
    return work("random_normal",
                {A::output(0), A::integer(n), A::number(attributes.get<double>("mean")),
                 A::number(attributes.get<double>("stddev"))});
  }
  if (op == "random_integers") {
    const std::int64_t low = attributes.get<std::int64_t>("low");
    return work("random_integers", {A::output(0), A::integer(n), A::integer(low),
                                    A::integer(attributes.get<std::int64_t>("high") - low)});
  }
  return {};
}

}  // namespace paceline::cuda
