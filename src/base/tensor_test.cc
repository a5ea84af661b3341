#include "paceline/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

TEST(Tensor, BeginsAtZeroAndAligned) {
  const Tensor tensor(DType::kFloat64, {3, 5});
  EXPECT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.bytes(), 120U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.raw()) % 64, 0U);
  EXPECT_TRUE(std::ranges::all_of(tensor.data<double>(), [](double x) { return x == 0; }));
}

TEST(Tensor, UndefinedUntilMade) { EXPECT_FALSE(Tensor().defined()); }

TEST(Tensor, EmptyTensorsHaveMemoryButNoElements) {
  const Tensor tensor(DType::kFloat32, {0, 4});
  EXPECT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.data<float>().size(), 0U);
  EXPECT_EQ(tensor.clone().elements(), 0);
}

// An int64 counts the elements of this shape, but not their bytes: each element takes four.
TEST(Tensor, MoreBytesThanMemoryHasAddressesForAreRefused) {
  const Shape shape{std::int64_t{1} << 62};
  const auto refused = [&](const auto& call) {
    EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, call),
              "[tensor] float32 (4611686018427387904) takes more bytes than memory has addresses");
  };
  refused([&] { const Tensor tensor(DType::kFloat32, shape); });
  const TensorView view{nullptr, DType::kFloat32, shape};
  refused([&] { EXPECT_EQ(view.bytes(), 0U); });
}

TEST(Tensor, KeepsValuesInRowMajorOrder) {
  const Tensor tensor = Tensor::of<std::int32_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(tensor.dtype(), DType::kInt32);
  EXPECT_EQ(tensor.data<std::int32_t>()[2], 3);
  EXPECT_EQ(tensor.view().as<std::int32_t>()[3], 4);
  EXPECT_EQ(tensor.view().bytes(), 16U);
  const Tensor flags = Tensor::of<bool>({2}, {true, false});
  EXPECT_TRUE(flags.data<bool>()[0]);
}

TEST(Tensor, ADefaultMadeOneHasNoValuesToRead) {
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, [] { Tensor().item<float>(); }),
            "[tensor] a default-made tensor has no values");
}

TEST(Tensor, AViewIsReadAsItsElementTypeOnly) {
  const Tensor tensor = Tensor::of<std::int32_t>({2, 2}, {1, 2, 3, 4});
  const TensorView view = tensor.view();
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, [&] { view.as<std::int64_t>(); }),
            "[tensor] int32 (2,2) read as int64");
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, [&] { view.as<float>(); }),
            "[tensor] int32 (2,2) read as float32");
  EXPECT_EQ(view.as<std::byte>()[4], std::byte{2});
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  const Tensor tensor = Tensor::of<float>({2}, {1, 2});
  Tensor copy;
  copy = tensor;
  const Tensor clone = tensor.clone();
  tensor.data<float>()[0] = 7;
  EXPECT_EQ(copy.data<float>()[0], 7);
  EXPECT_EQ(clone.data<float>()[0], 1);
}

TEST(Tensor, ItemIsOfOneElementOnly) {
  EXPECT_EQ(Tensor::scalar(2.5f).item<float>(), 2.5f);
  EXPECT_EQ(Tensor::of<float>({1, 1}, {3}).item<float>(), 3);
  EXPECT_THROW(Tensor::of<float>({2}, {1, 2}).item<float>(), Error);
}

TEST(Tensor, RefusesAWrongTypeOrCount) {
  EXPECT_THROW(Tensor::of<float>({3}, {1, 2}), Error);
  try {
    Tensor(DType::kFloat32, {3}).data<double>();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[tensor] float32 (3) read as float64");
  }
}

}  // namespace
}  // namespace paceline
