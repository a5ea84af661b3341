#include "data/ticket_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "data/data_position.h"
#include "data/testing/given_blocks.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RecordOrder small_order() { return RecordOrder({.files = {10}, .pool = 4}); }

std::vector<Ticket> taken(TicketStream stream, std::size_t most) {
  std::vector<Ticket> tickets;
  while (tickets.size() < most) {
    const std::optional<Ticket> ticket = stream.next();
    if (!ticket) break;
    tickets.push_back(*ticket);
  }
  return tickets;
}

TEST(TicketStream, GoesOnAtAnyPlace) {
  const std::vector<Ticket> all = taken({small_order(), 3, {}}, 100);
  ASSERT_EQ(all.size(), 30u);
  for (std::size_t place = 0; place <= 30; ++place) {
    const auto rest = taken({small_order(), 3, {.next = std::int64_t(place)}}, 100);
    ASSERT_EQ(rest.size(), 30 - place);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      EXPECT_EQ(rest[i].ordinal, all[place + i].ordinal);
      EXPECT_EQ(rest[i].epoch, all[place + i].epoch);
      EXPECT_EQ(rest[i].record.index, all[place + i].record.index);
    }
  }
}

TEST(TicketStream, BeginsWithRecordsThatAreLate) {
  const std::vector<Ticket> all = taken({small_order(), {}, {}}, 30);
  const auto rest = taken({small_order(), {}, {.next = 15, .late = {7, 12}}}, 4);
  ASSERT_EQ(rest.size(), 4u);
  EXPECT_EQ(rest[0].record.index, all[7].record.index);
  EXPECT_EQ(rest[1].record.index, all[12].record.index);
  EXPECT_EQ(rest[1].epoch, 1);
  EXPECT_EQ(rest[2].ordinal, 15);
  EXPECT_EQ(rest[3].ordinal, 16);
}

TEST(DataPlace, KnowsWhatWasUsedInAnyOrder) {
  DataPlace place;
  place.use(2);
  place.use(0);
  EXPECT_EQ(place.next, 3);
  EXPECT_THAT(place.late, ElementsAre(1));
  place.use(5);
  EXPECT_THAT(place.late, ElementsAre(1, 3, 4));
  for (const std::int64_t ordinal : {4, 1, 3}) place.use(ordinal);
  EXPECT_EQ(place.next, 6);
  EXPECT_THAT(place.late, IsEmpty());
}

TEST(DataPosition, IsReadAsItWasTold) {
  const DataPlace place = {.next = 25, .late = {3, 24}};
  TaskPosition position;
  tell_place(place, "data", 10, position);
  EXPECT_EQ(position.numbers["data.epoch"], 2);
  EXPECT_EQ(position.numbers["data.record"], 5);
  EXPECT_EQ(data_place(position, "data", 10), place);
  EXPECT_EQ(data_place(position, "other", 10), DataPlace());
  // Numbers that an earlier position has left do not matter.
  tell_place({.next = 30}, "data", 10, position);
  EXPECT_EQ(data_place(position, "data", 10), DataPlace{.next = 30});
}

TEST(DataPosition, IsTheSamePartOfAnEpochOfAnotherSize) {
  TaskPosition position;
  tell_place({.next = 25}, "data", 10, position);
  EXPECT_EQ(data_place(position, "data", 20).next, 50);
  EXPECT_EQ(data_place(position, "data", 4).next, 10);
}

TEST(DataPosition, RefusesNumbersThatCannotBe) {
  TaskPosition position;
  position.numbers = {{"data.epoch", 1}, {"data.record", 11}, {"data.size", 10}};
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { data_place(position, "data", 10); }),
              HasSubstr("no place in the data at record 11 of 10 of epoch 1"));
  position.numbers["data.record"] = -1;
  EXPECT_NE(error_of([&] { data_place(position, "data", 10); }), "");
}

TEST(TicketStream, GivesTheRecordsOfBlocksWhateverTheirOrder) {
  const OrderOptions shuffled{.files = {7}, .pool = 4};
  TicketStream all(RecordOrder(shuffled), 2, {});
  std::vector<std::int64_t> indices;
  while (const auto ticket = all.next()) indices.push_back(ticket->record.index);
  const auto blocks = std::make_shared<GivenBlocks>();
  blocks->blocks = {{5, 9}, {12, 14}, {0, 2}};
  TicketStream some(RecordOrder(shuffled), blocks);
  for (const std::int64_t ordinal : {5, 6, 7, 8, 12, 13, 0, 1}) {
    const auto ticket = some.next();
    ASSERT_TRUE(ticket);
    EXPECT_EQ(ticket->ordinal, ordinal);
    EXPECT_EQ(ticket->record.index, indices[std::size_t(ordinal)]);
  }
  EXPECT_FALSE(some.ready());
  blocks->is_over = true;
  EXPECT_TRUE(some.ready());
  EXPECT_FALSE(some.next());
}

}  // namespace
}  // namespace paceline
