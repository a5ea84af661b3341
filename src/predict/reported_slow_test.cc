// Public reports of distributed training that was no faster than one process. For each report, the
// test checks what a prediction would have told its author, made from sizes, step time, link and
// the reporter's transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "predict/sized_job.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

struct ReportedCase {
  std::string_view source, facts;
  SizedJob job;
  double reported = 0;     // steps/s of all workers together
  std::string_view limit;  // words that the prediction must say
};

constexpr double kRateOfGrpc = 332e6;  // bytes/s through the ps: 2.2 steps/s × 151 MB

const ReportedCase kReportedCases[] = {
    {"tensorflow issue 10145: mlp, 1 ps + 1 worker on one host",
     "18,882,816 parameters in 6 tensors; 150 to 200 steps/s alone on a Titan X, 2.2 with a ps. "
     "The "
     "rate of its transport is computed from this row, which so tests the rest of the step",
     {.parameters = 18'882'816, .step_ms = 5.6, .tensors = 6, .stream_bytes_per_s = kRateOfGrpc},
     2.2,
     "the transport: 151 MB a step at 332 MB/s"},
    {"a report on the Penn Treebank model, small: 1 ps + 2 workers on one host",
     "10.6 MB of dense values and 400 rows of 200 each way; 11,000 words/s alone on an M40, 400 "
     "words a step; two workers made 6,000 words/s each",
     {.parameters = 2.65e6 + 400 * 200,
      .step_ms = 36,
      .tensors = 7,
      .workers = 2,
      .stream_bytes_per_s = kRateOfGrpc},
     2 * 6000.0 / 400,
     "the transport"},
    {"tensorflow issue 11411: fetching one variable of 128 × 256 numbers",
     "262 µs with a local variable, 680 µs with one on a ps; 313 to 417 µs were added to a step, "
     "whatever the network",
     {.parameters = 128 * 256, .step_ms = 0.262, .tensors = 1, .message_s = 350e-6},
     1 / 680e-6,
     "the transport: 1 messages a step take 0.35 ms"},
    {"tensorflow issue 6520: cifar10 on 8 GPUs of one process",
     "5,965 images/s on one GPU and 6,608 on eight, in batches of 128 each; preprocessing on the "
     "CPU gave about 6,600 images/s",
     {.parameters = 1'068'298,
      .step_ms = 1e3 * 128 / 5965,
      .tensors = 10,
      .workers = 8,
      .ps = 0,
      .strategy = {"allreduce"},
      .input_per_s = 6600,
      .examples = 128},
     6608.0 / 128,
     "the input gives"},
    {"tensorflow issue 9399: ResNet-110, 1 ps + 4 workers on two machines with 1 Gbit/s",
     "1,727,962 parameters, about 900 small messages a step; 3 steps/s alone and in all clusters "
     "together. The time of a message is that of the report before",
     {.parameters = 1'727'962,
      .step_ms = 333,
      .tensors = 900,
      .workers = 4,
      .gbps = 1,
      .message_s = 350e-6},
     3,
     "the transport: 900 messages a step"},
};

/// Reports of the same kind that lack the figures that a prediction needs.
struct UncountedCase {
  std::string_view source, missing;
};
constexpr UncountedCase kUncountedCases[] = {
    {"facebookarchive/caffe2 issue 902",
     "1,200 images/s on 8 GPUs of one machine, 130 on two machines with 4 each; the network "
     "between "
     "them is not told"},
    {"speechbrain issue 1096", "an epoch took longer on 4 to 8 GPUs; no times, input suspected"},
    {"pytorch/examples issue 1085", "4 times slower; neither model nor machine are told"},
    {"facebookresearch/dora issue 60", "slow on two machines; no times and no network are told"},
    {"facebookresearch/detectron2 issue 4730", "two nodes with 4 GPUs; times are in a log only"},
    {"facebookresearch/maskrcnn-benchmark issue 628", "times are in pictures; no network is told"},
    {"IBM/FfDL issue 169", "times are in pictures; no network is told"},
};

class ReportedSlowTest : public ::testing::TestWithParam<ReportedCase> {};

TEST_P(ReportedSlowTest, IsToldWithItsLimit) {
  const ReportedCase& it = GetParam();
  const Prediction theirs = predict(predicted_job_of(it.job, false), shape_of(it.job));
  EXPECT_THAT(theirs.steps_per_s / it.reported, AllOf(Ge(0.7), Le(1.3)))
      << it.source << ": " << theirs.steps_per_s << " steps/s, reported " << it.reported;
  EXPECT_THAT(theirs.limit, HasSubstr(std::string(it.limit)));
  // The job makes less than two thirds of the steps that its devices could make.
  EXPECT_THAT(theirs.times_alone, Le(0.67 * it.job.workers));
}

TEST_P(ReportedSlowTest, PacelineWouldBeFasterWhereTheTransportIsTheLimit) {
  const ReportedCase& it = GetParam();
  if (!it.job.has_transport()) GTEST_SKIP() << "the input is the limit";
  const Prediction theirs = predict(predicted_job_of(it.job, false), shape_of(it.job));
  const Prediction own = predict(predicted_job_of(it.job, true), shape_of(it.job));
  EXPECT_THAT(own.steps_per_s, Ge(1.3 * theirs.steps_per_s)) << it.source;
}

INSTANTIATE_TEST_SUITE_P(Reports, ReportedSlowTest, ::testing::ValuesIn(kReportedCases));

TEST(ReportedSlowTest, ReportsWithoutFiguresAreNamedAndNotCounted) {
  for (const UncountedCase& each : kUncountedCases) EXPECT_FALSE(each.missing.empty());
}

}  // namespace
}  // namespace paceline
