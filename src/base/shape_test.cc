#include "paceline/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

TEST(Shape, ScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.str(), "()");
  EXPECT_EQ(scalar, Shape({}));
}

TEST(Shape, KnowsItsDimensions) {
  const Shape shape{3, 4, 5};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.elements(), 60);
  EXPECT_EQ(shape[0], 3);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape[-3], 3);
  EXPECT_EQ(shape.str(), "(3,4,5)");
  EXPECT_EQ(std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()),
            (std::vector<std::int64_t>{3, 4, 5}));
}

TEST(Shape, EmptyDimensionMakesNoElements) {
  EXPECT_EQ((Shape{3, 0, 5}).elements(), 0);
  EXPECT_EQ((Shape{0}).str(), "(0)");
}

TEST(Shape, EqualOnlyWithTheSameRankAndDimensions) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{1}), (Shape{}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(Shape, RefusesWhatCannotBe) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(Shape({2, -1}), Error);
  EXPECT_THROW(Shape({kHuge, 2}), Error);
  EXPECT_THROW(Shape({0, kHuge, 2}), Error);
  EXPECT_NO_THROW(Shape({kHuge, 1}));
  EXPECT_NO_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
}

TEST(Shape, SaysWhatCannotBe) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument,
                     [] {
                       Shape{2, -1};
                     }),
            "[shape] dimension 1 is -1: it is negative");
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument,
                     [] {
                       Shape{kHuge, 256};
                     }),
            "[shape] (9223372036854775807,256) has too many elements");
}

TEST(Shape, NamesTheDimensionThatIsNotThere) {
  const Shape shape{3, 4};
  EXPECT_THROW(shape[-3], Error);
  try {
    shape[2];
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "[shape] no dimension 2 in (3,4)");
  }
}

}  // namespace
}  // namespace paceline
