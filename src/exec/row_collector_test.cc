#include "exec/executor.h"

#include <gmock/gmock.h>

#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;

TEST(RowCollector, UnitesTheIdsOfAllLookUps) {
  const Tensor first = Tensor::of<std::int32_t>({2, 2}, {7, 3, 3, 0});
  const Tensor second = Tensor::of<std::int32_t>({1}, {5});
  const RowReads reads[] = {{4, 8, false, {0, 1}}};
  const std::vector<TensorView> ids[] = {{first.view(), second.view()}};
  RowCollector collector(reads, ids);

  ASSERT_EQ(collector.collect().size(), 1u);
  EXPECT_EQ(collector.collect()[0].variable, 4);
  EXPECT_THAT(collector.collect()[0].ids, ElementsAre(0, 3, 5, 7));
  second.data<std::int32_t>()[0] = 3;
  EXPECT_THAT(collector.collect()[0].ids, ElementsAre(0, 3, 7));
}

TEST(RowCollector, NamesAnIdThatIsNoRow) {
  const Tensor wrong = Tensor::of<std::int32_t>({2}, {1, 8});
  const RowReads reads[] = {{0, 8, false, {0}}};
  const std::vector<TensorView> ids[] = {{wrong.view()}};
  RowCollector collector(reads, ids);
  try {
    collector.collect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "[embedding_lookup] id 8 is outside [0,8)");
  }
  wrong.data<std::int32_t>()[1] = -1;
  EXPECT_THROW(collector.collect(), Error);
}

TEST(RowCollector, AsksForAllRowsOfAVariableThatIsReadAsAWhole) {
  const RowReads reads[] = {{2, 3, true, {}}};
  const std::vector<TensorView> ids[] = {{}};
  RowCollector collector(reads, ids);
  EXPECT_THAT(collector.collect()[0].ids, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace paceline
