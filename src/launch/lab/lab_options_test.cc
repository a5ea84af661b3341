#include "launch/lab/lab_options.h"

#include <gmock/gmock.h>

#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LabPlace, NamesTheTasksOfEachHost) {
  const LabOptions lab = parse_lab_place("ps+2/2ps/0/3");
  EXPECT_EQ(lab.hosts, 4);
  EXPECT_THAT(lab.ps, ElementsAre(0, 1, 1));
  EXPECT_THAT(lab.workers, ElementsAre(0, 0, 3, 3, 3));
}

TEST(LabPlace, OfOneHost) {
  EXPECT_THAT(parse_lab_place("ps+1").workers, ElementsAre(0));
  EXPECT_THAT(parse_lab_place("2").ps, IsEmpty());
}

TEST(LabPlace, RefusesWhatIsNoHost) {
  for (const char* text : {"", "ps+", "ps/", "/2", "2+ps", "ps+2+2", "-1", "2000", "ps+x", "xps"}) {
    EXPECT_THROW(parse_lab_place(text), Error) << text;
  }
  try {
    parse_lab_place("ps+2/two");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'two' is no host"));
  }
}

TEST(SpreadTasks, GivesEachAHostOfItsOwnWhereThereAreEnough) {
  LabOptions lab{.hosts = 4};
  spread_tasks(lab, 1, 3);
  EXPECT_THAT(lab.ps, ElementsAre(0));
  EXPECT_THAT(lab.workers, ElementsAre(1, 2, 3));
}

TEST(SpreadTasks, GoesRoundTheHostsOtherwise) {
  LabOptions lab{.hosts = 3};
  spread_tasks(lab, 2, 4);
  EXPECT_THAT(lab.ps, ElementsAre(0, 1));
  EXPECT_THAT(lab.workers, ElementsAre(0, 1, 2, 0));
}

TEST(LabText, ListsTheTasksOfEachHost) {
  LabOptions lab = parse_lab_place("ps+2/0/1");
  lab.gbps = 0.25;
  EXPECT_EQ(lab_text(lab),
            "Emulated hosts, with links of 0.25 Gbit/s:\n"
            "  10.77.0.1  ps:0, worker:0, worker:1\n"
            "  10.77.0.2  no task\n"
            "  10.77.0.3  worker:2\n");
}

TEST(LabAddress, IsOneOfItsOwnForEachOfManyHosts) {
  EXPECT_EQ(lab_address(0), "10.77.0.1");
  EXPECT_EQ(lab_address(249), "10.77.0.250");
  EXPECT_EQ(lab_address(250), "10.77.1.1");
}

}  // namespace
}  // namespace paceline
