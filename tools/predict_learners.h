// A study of many learners that are uneven and fail now and then, by strategy.
#pragma once

#include "cluster/flags/command_line.h"
#include "predict/learner_study.h"
#include "predict/sized_job.h"

namespace paceline {

std::vector<Flag> learner_flags();
/// Throws kUsage when some of them are given without --learners, which would mean nothing.
void check_learner_flags(const FlagValues& values);
/// The step and the link are those of the job. Throws kUsage.
LearnerStudy read_learner_study(const FlagValues& values, const SizedJob& job);

}  // namespace paceline
