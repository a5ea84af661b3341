#include "run/report/bad_records_in_words.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(BadRecordsInWords, CountsThem) {
  TaskReport task;
  EXPECT_EQ(bad_records_in_words(task), "");
  task.input.emplace();
  EXPECT_EQ(bad_records_in_words(task), "");
  task.input->bad = 1;
  EXPECT_EQ(bad_records_in_words(task), "1 bad record was left out of the input.");
  task.input->bad = 1200;
  EXPECT_EQ(bad_records_in_words(task), "1,200 bad records were left out of the input.");
}

}  // namespace
}  // namespace paceline
