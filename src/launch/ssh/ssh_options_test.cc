#include "launch/ssh/ssh_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string refusal_of(const std::string& text) {
  try {
    parse_ssh_hosts(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SshHosts, AreNamesWithUsersAndRoom) {
  EXPECT_THAT(parse_ssh_hosts("a,me@b.example:4,10.0.0.7,[fe80::1%eth0]:2,fe80::2,[fe80::3]"),
              ElementsAre(SshHost{.name = "a"}, SshHost{"me", "b.example", 4},
                          SshHost{.name = "10.0.0.7"}, SshHost{.name = "fe80::1%eth0", .room = 2},
                          SshHost{.name = "fe80::2"}, SshHost{.name = "fe80::3"}));
  EXPECT_EQ(parse_ssh_hosts("me@b:4").front().destination(), "me@b");
}

TEST(SshHosts, ThatSshWouldMisunderstandAreRefused) {
  EXPECT_THAT(refusal_of("a,,b"), HasSubstr("'' is no name"));
  EXPECT_THAT(refusal_of(""), HasSubstr("'' is no name"));
  EXPECT_THAT(refusal_of("-oProxyCommand=x"), HasSubstr("is no name"));
  EXPECT_THAT(refusal_of("-l@b"), HasSubstr("no user before @"));
  EXPECT_THAT(refusal_of("a b"), HasSubstr("is no name"));
  EXPECT_THAT(refusal_of("a;rm"), HasSubstr("is no name"));
  EXPECT_THAT(refusal_of("a:0"), HasSubstr("'a:0' must be HOST, or HOST:N"));
  EXPECT_THAT(refusal_of("a:x"), HasSubstr("must be HOST, or HOST:N"));
  EXPECT_THAT(refusal_of("a,b,a:2"), HasSubstr("'a' is named twice: a:N makes room"));
  EXPECT_THAT(refusal_of("localhost,b"), HasSubstr("'localhost' means another host to each host"));
  EXPECT_EQ(refusal_of("localhost"), "");
}

TEST(SshHosts, GetTasksInTurnWhereThereIsRoom) {
  const auto place = [](const std::string& hosts, int ps, int workers) {
    return place_on_hosts(parse_ssh_hosts(hosts), ps, workers);
  };
  const Placement apart = place("a,b,c,d", 1, 2);
  EXPECT_THAT(apart.ps, ElementsAre(0));
  EXPECT_THAT(apart.workers, ElementsAre(1, 2));
  const Placement together = place("a,b", 1, 4);
  EXPECT_THAT(together.ps, ElementsAre(0));
  EXPECT_THAT(together.workers, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(place("a:1,b:3", 2, 4).workers, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(place("a,b:1", 0, 4).workers, ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(place("a,b,c:1", 1, 2).workers, ElementsAre(1, 2));
  EXPECT_THAT(place("a", 0, 1).ps, IsEmpty());
  try {
    place("a:1,b:1", 1, 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the hosts have room for 2 workers, and 3 are to start"));
  }
}

}  // namespace
}  // namespace paceline
