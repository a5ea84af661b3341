#include "graph/fused_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "paceline/error.h"

namespace paceline {
namespace {

using Kind = FusedOperand::Kind;

TEST(FusedProgram, ReadsWhatTheCommentShows) {
  const std::vector<FusedStep> steps = parse_fused_program("add i0 i1\nscale t0 0.5\nrelu t1\n");
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0], (FusedStep{"add", {{Kind::kInput, 0}, {Kind::kInput, 1}}, 0}));
  EXPECT_EQ(steps[1], (FusedStep{"scale", {{Kind::kStep, 0}}, 0.5}));
  EXPECT_EQ(steps[2], (FusedStep{"relu", {{Kind::kStep, 1}}, 0}));
}

TEST(FusedProgram, EveryOpComesBackAsItWas) {
  std::vector<FusedStep> steps;
  for (const FusableOp& op : fusable_ops()) {
    FusedStep step{std::string(op.name), {{Kind::kInput, 3}}, op.number.empty() ? 0 : -0.125};
    for (int i = 1; i < op.operands; ++i) step.operands.push_back({Kind::kInput, 11 + i});
    steps.push_back(step);
  }
  EXPECT_EQ(parse_fused_program(format_fused_program(steps)), steps);
}

TEST(FusedProgram, NumbersComeBackBitForBit) {
  for (double number : {0.1, 1.0 / 3, -1e300, 5e-324, 0x1.fffffffffffffp-1,
                        std::numeric_limits<double>::infinity()}) {
    const FusedStep step{"scale", {{Kind::kInput, 0}}, number};
    EXPECT_EQ(parse_fused_program(format_fused_program({&step, 1}))[0].number, number);
  }
}

TEST(FusedProgram, RefusesWhatIsNoProgram) {
  for (const char* text : {"", "\n", "foo i0", "add i0", "add i0 i1 i2", "relu t0", "relu i-1",
                           "relu i", "relu x0", "scale i0", "scale i0 half", "relu i0 1.0",
                           "relu i0\nadd t0 t1", "relu i0x", "where i0 i1"}) {
    EXPECT_THROW(parse_fused_program(text), Error) << text;
  }
}

}  // namespace
}  // namespace paceline
