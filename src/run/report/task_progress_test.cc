#include "run/report/task_progress.h"

#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

TEST(TaskProgress, IsReadAsItWasWritten) {
  TaskProgress progress;
  progress.at = 12.25;
  progress.report.model = "mlp";
  progress.report.strategy = "async";
  TaskReport task;
  task.task = "worker:1";
  task.steps = 40;
  task.unit = "images";
  task.share = {{"pull", 0.75}, {"compute", 0.25}};
  progress.report.tasks = {task};
  progress.lines = {"step 40", "waits for round 41"};
  progress.numbers = {{"loss/valid", 0.25}, {"accuracy", 0.5}};
  EXPECT_EQ(TaskProgress::from_json(progress.to_json()), progress);
}

TEST(TaskProgress, WhatIsNoneIsAnError) {
  for (const char* text :
       {"", "x", "{}", R"({"at": 1, "lines": [], "report": 3})",
        R"({"at": "1", "lines": [], "report": {}})", R"({"at": 1, "lines": [1], "report": {}})"}) {
    EXPECT_THROW(TaskProgress::from_json(text), Error) << text;
  }
}

}  // namespace
}  // namespace paceline
