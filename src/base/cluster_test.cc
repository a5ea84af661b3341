#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/cluster.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& spec) {
  return error_of(ErrorCode::kUsage, [&] { ClusterSpec::parse(spec); });
}

TEST(ClusterSpec, ReadsJobsInEitherOrder) {
  const ClusterSpec spec = ClusterSpec::parse("worker=c:1,[::1]:2;ps=a:1,b:65535");
  EXPECT_THAT(spec.ps, ElementsAre("a:1", "b:65535"));
  EXPECT_THAT(spec.workers, ElementsAre("c:1", "[::1]:2"));
  EXPECT_EQ(spec.str(), "ps=a:1,b:65535;worker=c:1,[::1]:2");
  EXPECT_EQ(ClusterSpec::parse(spec.str()), spec);
}

TEST(ClusterSpec, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal("ps=a:1;wrker=b:1"), HasSubstr("unknown job 'wrker'"));
  EXPECT_THAT(refusal("ps=a:1;wrker=b:1"), HasSubstr("did you mean 'worker'?"));
  EXPECT_THAT(refusal("ps=a;worker=b:1"), HasSubstr("'a' is no address: the port is missing"));
  EXPECT_THAT(refusal("ps=a:;worker=b:1"), HasSubstr("the port is missing"));
  EXPECT_THAT(refusal("ps=::1"), HasSubstr("[host]:port for IPv6"));
  EXPECT_THAT(refusal("ps=010.0.0.1:1"), HasSubstr("'010.0.0.1' is no IPv4 address"));
  EXPECT_THAT(refusal("ps=a:1;worker=grpc://h:1"), HasSubstr("leave out the scheme 'grpc://'"));
  EXPECT_THAT(refusal("ps=:1"), HasSubstr("the host is missing"));
  EXPECT_THAT(refusal("ps=a:0"), HasSubstr("1 to 65535"));
  EXPECT_THAT(refusal("ps=a:65536"), HasSubstr("'65536' is no port"));
  EXPECT_THAT(refusal("ps=a:1x"), HasSubstr("'1x' is no port"));
  EXPECT_THAT(refusal("ps=a:1,,b:1"), HasSubstr("'' is no address"));
  EXPECT_THAT(refusal("ps=a:1;ps=b:1"), HasSubstr("given twice"));
  EXPECT_THAT(refusal("ps=a:1,b:1;worker=b:1"),
              HasSubstr("b:1 is the address of both ps:1 and worker:0"));
  EXPECT_THAT(refusal("a:1"), HasSubstr("'a:1' is no job"));
  EXPECT_THAT(refusal(""), HasSubstr("is no job"));
}

TEST(TaskId, ReadsAndPrints) {
  EXPECT_EQ(TaskId::parse("ps:3"), (TaskId{TaskId::Role::kPs, 3}));
  EXPECT_EQ(TaskId::parse("worker:0").str(), "worker:0");
  for (const char* bad : {"worker", "worker:", "worker:-1", "worker:1x", "chief:0"}) {
    EXPECT_THROW(TaskId::parse(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace paceline
