#include "net/wrapped/traced_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/testing/conformance.h"

namespace paceline {
namespace {

using ::testing::UnorderedElementsAre;

std::string name_of(std::uint16_t type) { return "type" + std::to_string(type); }

std::vector<std::string> names_in(const Timeline& timeline) {
  std::vector<std::string> names;
  for (const Timeline::Event& event : timeline.events()) {
    EXPECT_EQ(event.label->category, "frame");
    EXPECT_LE(event.begin, event.end);
    names.push_back(event.label->name + " " + std::to_string(event.bytes));
  }
  return names;
}

TEST(TracedLink, ShowsFramesThatAreSentAndReceived) {
  Timeline here(0, 1), there(0, 1);
  const TestNetwork network;
  TestReceiver receiver;
  Listener listener(traced_link(network.make("inproc"), there, name_of), "task:0");
  const auto link = traced_link(network.make("inproc"), here, name_of);
  const auto connection = link->connect(listener.address(), receiver, Deadline::after(kPatience));

  connection->send({.type = 1}, {});  // nothing is recorded yet
  ASSERT_TRUE(listener.receiver(0)->wait_frames(1));
  EXPECT_TRUE(here.events().empty());
  here.begin_step(0);
  there.begin_step(0);
  const std::vector<std::byte> bytes(100);
  connection->send({.payload_bytes = 100, .type = 3}, bytes);
  connection->send({.type = 4}, {});
  connection->send({.type = kMostFrameTypes}, {});
  connection->send_copy({.type = 5}, bytes);
  ASSERT_TRUE(listener.receiver(0)->wait_frames(5));
  EXPECT_THAT(names_in(here), UnorderedElementsAre("send type3 100", "send type4 0", "send frame 0",
                                                   "send type5 100"));
  connection->close(Deadline::after(kPatience));
  receiver.wait_closed();
  listener.receiver(0)->wait_closed();  // waits, so that its last frame is on the timeline
  EXPECT_THAT(names_in(there), UnorderedElementsAre("receive type3 100", "receive type4 0",
                                                    "receive frame 0", "receive type5 100"));
}

}  // namespace
}  // namespace paceline
