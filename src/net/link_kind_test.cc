#include "net/link_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "net/link.h"

namespace paceline {
namespace {

TEST(LinkKind, EachNameMakesALinkOfItsKind) {
  for (const std::string& name : link_names()) EXPECT_EQ(make_link(name, {})->kind(), name);
}

TEST(LinkKind, OnlySharedMemoryNeedsOneHostAndOnlyTcpIsAlwaysOnANetwork) {
  for (const LinkKind& kind : link_kinds()) {
    EXPECT_EQ(kind.needs_one_host(), kind.name == "shm") << kind.name;
    EXPECT_EQ(kind.on_network, kind.name == "tcp") << kind.name;
    EXPECT_EQ(kind.within_a_process, kind.name == "inproc") << kind.name;
  }
}

TEST(LinkKind, AnUnknownOneIsNamedWithAllAndHasNoTrait) {
  const std::string message =
      error_of(ErrorCode::kInvalidArgument, [] { make_link("carrier pigeon", {}); });
  EXPECT_THAT(message, testing::HasSubstr("--link=carrier pigeon: there is no such link; there "
                                          "are auto, shm, tcp, inproc"));
  EXPECT_FALSE(link_traits("carrier pigeon").on_network);
}

}  // namespace
}  // namespace paceline
