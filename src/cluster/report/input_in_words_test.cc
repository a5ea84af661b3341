#include "cluster/report/input_in_words.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TaskReport worker_with_input(double share) {
  TaskReport task;
  task.task = "worker:0";
  task.examples_per_s = 380;
  task.unit = "images";
  task.share = {{"input", share}, {"compute", 1 - share}};
  task.input = {.stages = {{.name = "read", .records = 1000, .seconds = 0.25},
                           {.name = "decode", .records = 1000, .seconds = 4},
                           {.name = "distort", .records = 1000, .seconds = 0.75},
                           {.name = "prefetch", .fill = 0.1}},
                .records = 900,
                .most_threads = 2,
                .seconds = 10,
                .waited = 4};
  return task;
}

TEST(InputInWords, NamesTheSlowestStageItsRateAndWhatTheRestCouldTake) {
  EXPECT_EQ(input_in_words(worker_with_input(0.5)),
            "The input is the limit, at decode: with 2 threads it could make 400 images/s, and the "
            "rest of the step could take 760 images/s.");
}

TEST(InputInWords, SaysWhenItsThreadsLackCores) {
  TaskReport task = worker_with_input(0.25);
  task.examples_per_s = 75;
  EXPECT_EQ(
      input_in_words(task),
      "Batches were waited for in 25% of the time, though with 2 threads the input could make "
      "400 images/s, and the rest of the step could take 100 images/s: its threads lacked "
      "cores.");
}

TEST(InputInWords, SaysNothingWhereBatchesWereReady) {
  EXPECT_EQ(input_in_words(worker_with_input(0.049)), "");
  TaskReport task = worker_with_input(0.5);
  task.input.reset();
  EXPECT_EQ(input_in_words(task), "");
  EXPECT_EQ(input_in_words({}), "");
}

TEST(InputInWords, SaysWhereTimeGoesThoughBatchesWereReady) {
  TaskReport task = worker_with_input(0.2);
  task.input->waited = 0.9;
  EXPECT_EQ(input_in_words(task),
            "Batches were ready when they were wanted; 20% of the time went to copying them to "
            "where the step reads them.");
}

TEST(InputInWords, CountsBadRecords) {
  TaskReport task = worker_with_input(0.01);
  task.input->bad = 1;
  EXPECT_EQ(input_in_words(task), "1 bad record was left out of the input.");
  task = worker_with_input(0.5);
  task.input->bad = 1200;
  EXPECT_EQ(input_in_words(task),
            "The input is the limit, at decode: with 2 threads it could make 400 images/s, and the "
            "rest of the step could take 760 images/s. 1,200 bad records were left out of the "
            "input.");
}

}  // namespace
}  // namespace paceline
