#include "kernels/cpu/plain_product.h"

#include <gmock/gmock.h>

#include "paceline/error.h"

namespace paceline {
namespace {

TEST(PlainProduct, MultipliesInFloat32AndWhereTheMachineCanInBFloat16) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    try {
      PlainProduct product(dtype, 48);
      product.run();
      EXPECT_THAT(product.result(), ::testing::Each(48.0f));
      EXPECT_EQ(product.flops(), 2.0 * 48 * 48 * 48);
    } catch (const Error& error) {
      ASSERT_EQ(dtype, DType::kBFloat16);
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    }
  }
}

}  // namespace
}  // namespace paceline
