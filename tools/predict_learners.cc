#include "tools/predict_learners.h"

#include "cli/flags/flag_checks.h"
#include "run/network_rate.h"

namespace paceline {
namespace {

constexpr const char* kLearners = "Many learners";
constexpr std::int64_t kMostLearners = 1'000'000, kMostUneven = 50;

/// A flag about one job's way, and why it says nothing about many learners.
struct UnusedFlag {
  const char* flag;
  const char* why;
};
constexpr UnusedFlag kUnused[] = {
    {"--workers", "the learners are the workers"},
    {"--ps", "parameter servers are no limit of many learners"},
    {"--strategy", "many learners are compared by all strategies"},
    {"--transport", "many learners exchange over links alone, whose rate is --gbps R"},
    {"--tensors", "many learners exchange all parameters at once"},
    {"--input-rate", "many learners have all the input that they need"},
    {"--examples", "many learners are compared by their steps"},
    {"--time-limit", "many learners are compared by all strategies"},
};

void check_without_learners(const FlagValues& values) {
  for (const Flag& flag : learner_flags()) {
    if (values.given(flag.name)) {
      refuse_flag(flag.name, values.text(flag.name), "is about many learners: give --learners N");
    }
  }
}

}  // namespace

std::vector<Flag> learner_flags() {
  return {
      {"--learners", "N", "The share of their time that N learners use, by strategy", kLearners},
      {"--uneven", "P", "The standard deviation of a step's time, in percent (default 5)",
       kLearners},
      {"--mtbf-hours", "H", "A learner's mean time between failures (default: none of them fails)",
       kLearners},
      {"--restart-s", "S", "The time after which one that failed is back (default 60)", kLearners},
      {"--notice-s", "S",
       "The time after which the others know that one is gone (default 5; a process that dies is "
       "noticed at once, a host that is cut off after 5 s)",
       kLearners},
  };
}

void check_learner_flags(const FlagValues& values) {
  if (!values.given("--learners")) return check_without_learners(values);
  for (const UnusedFlag& unused : kUnused) {
    check_apart(values, "--learners", unused.flag, unused.why);
  }
  for (const char* flag : {"--restart-s", "--notice-s"}) {
    check_together(values, flag, "--mtbf-hours", "without it no learner fails");
  }
}

LearnerStudy read_learner_study(const FlagValues& values, const SizedJob& job) {
  const LearnerStudy usual;
  LearnerStudy study{.step_s = job.step_ms * 1e-3, .local_steps = job.strategy.local_steps};
  study.learners = int(values.whole_number("--learners", 1, kMostLearners).value_or(1));
  study.uneven = double(values.whole_number("--uneven", 0, kMostUneven).value_or(5)) / 100;
  study.mtbf_s = values.positive_number("--mtbf-hours").value_or(0) * 3600;
  study.restart_s = values.positive_number("--restart-s").value_or(usual.restart_s);
  study.notice_s = values.positive_number("--notice-s").value_or(usual.notice_s);
  // Contributions go one way and values the other.
  if (job.gbps > 0 && job.parameters > 0) {
    study.exchange_s = job.parameters * sizeof(float) / (job.gbps * kPayloadOfGigabit) * 2;
  }
  return study;
}

}  // namespace paceline
