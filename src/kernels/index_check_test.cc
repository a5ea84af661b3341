// Tests ids and labels outside their range: on every device, the step fails and names them.
#include <gmock/gmock.h>

#include "base/testing/error_of.h"
#include "kernels/evaluate.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

class IndexCheck : public testing::TestWithParam<const char*> {
 protected:
  std::string message_of(Value value, const Tensor& indices) {
    RealClock clock;
    DeviceOptions options;
    options.kind = GetParam();
    options.threads = 2;
    const auto device = make_device(options, clock);
    const Feeds feeds = {{"x", Tensor(DType::kFloat32, {3, 10})}, {"indices", indices}};
    return error_of(ErrorCode::kInvalidArgument, [&] {
      evaluate_graph({&value, 1}, feeds, *device);
    });
  }

  Graph graph_;
  const Value x_ = graph_.variable("x", {3, 10});
  const Value indices_ = graph_.input("indices", {3}, DType::kInt32);
};

Tensor indices(std::int32_t a, std::int32_t b, std::int32_t c) {
  return Tensor::of<std::int32_t>({3}, {a, b, c});
}

TEST_P(IndexCheck, Labels) {
  const Value loss = softmax_cross_entropy(x_, indices_);
  EXPECT_EQ(message_of(loss, indices(0, 9, 3)), "");
  EXPECT_EQ(message_of(loss, indices(0, 10, 3)),
            "[softmax_cross_entropy] softmax_cross_entropy: label 10 at 1 is outside [0,10)");
  EXPECT_THAT(message_of(top_k_accuracy(x_, indices_, 2), indices(0, 1, -1)),
              testing::HasSubstr("label -1 at 2 is outside [0,10)"));
}

TEST_P(IndexCheck, Ids) {
  EXPECT_EQ(message_of(embedding_lookup(x_, indices_), indices(3, 0, 0)),
            "[embedding_lookup] embedding_lookup: id 3 at 0 is outside [0,3)");
  const Value sums = graph_.apply("sum_rows", {indices_, x_}, {{"table_rows", std::int64_t{5}}});
  EXPECT_THAT(message_of(sums, indices(4, 4, 5)), testing::HasSubstr("id 5 at 2 is outside [0,5)"));
  const Value rows = graph_.apply("scatter_rows", {indices_, x_}, {{"rows", std::int64_t{2}}});
  EXPECT_THAT(message_of(rows, indices(1, 2, 0)), testing::HasSubstr("id 2 at 1 is outside [0,2)"));
}

INSTANTIATE_TEST_SUITE_P(Devices, IndexCheck, testing::Values("naive", "cpu"));

}  // namespace
}  // namespace paceline
