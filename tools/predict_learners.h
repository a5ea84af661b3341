// A study of many learners that are uneven and fail now and then, by strategy.
#pragma once

#include "cli/flags/command_line.h"
#include "predict/learner_study.h"
#include "predict/sized_job.h"

namespace paceline {

std::vector<Flag> learner_flags();
/// Throws kUsage when a flag is given that would mean nothing: one of them without --learners, or
/// one beside it that says nothing about many learners.
void check_learner_flags(const FlagValues& values);
/// The step and the link are those of the job. Throws kUsage.
LearnerStudy read_learner_study(const FlagValues& values, const SizedJob& job);

}  // namespace paceline
