#include "train/copies_at_once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <string>

#include "base/temporary_folder.h"
#include "net/shm/unix_socket.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using Kind = CopiesMessage::Kind;

// The part of `paceline predict`: waits for a caller, and for its next message.
FileDescriptor accepted(const FileDescriptor& listener) {
  pollfd readable{listener.get(), POLLIN, 0};
  poll(&readable, 1, -1);
  return FileDescriptor(::accept(listener.get(), nullptr, nullptr));
}

class CopiesAtOnceTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string name_ = folder_.path();  // a name that no other process has
  const FileDescriptor listener_ = listen_at_abstract(name_);
};

TEST_F(CopiesAtOnceTest, MessagesAreReadAsTheyWereWritten) {
  const CopiesMessage paces{.kind = Kind::kPaces, .paces = {{0.5, 1.25}, {0.75, 0}}};
  EXPECT_EQ(copies_message_of(text_of(paces))->paces, paces.paces);
  EXPECT_EQ(copies_message_of(text_of({.kind = Kind::kAsk, .number = 3}))->number, 3);
  const CopiesMessage why{.kind = Kind::kWhy, .why = "copy 1 of 2 failed:\n  1 2 3"};
  EXPECT_EQ(copies_message_of(text_of(why))->why, why.why);
  for (const char* const none : {"", "copies", "copies 0", "pace", "paces x", "gone"}) {
    EXPECT_FALSE(copies_message_of(none)) << none;
  }
}

TEST_F(CopiesAtOnceTest, ACopyWaitsForTheOthersAndGoesOnUntilAllHaveToldTheirPaces) {
  auto copy = std::async(std::launch::async, [&] {
    CopyAmongOthers among(name_ + "/2");
    EXPECT_TRUE(among.wait_for_others());
    EXPECT_FALSE(among.is_over());
    among.tell({.seconds = 0.5, .busy_cores = 1});
    while (!among.is_over()) {
    }
  });
  FileDescriptor socket = accepted(listener_);
  const auto ready = next_copies_message(socket.get());
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->kind, Kind::kReady);
  EXPECT_EQ(ready->number, 2);
  send_message(socket.get(), text_of({.kind = Kind::kGo}), -1);
  const auto pace = next_copies_message(socket.get());
  ASSERT_TRUE(pace);
  EXPECT_THAT(pace->paces, ElementsAre(StepPace{0.5, 1}));
  socket = FileDescriptor();
  copy.get();
}

TEST_F(CopiesAtOnceTest, ACopyThatIsStoppedWaitsNoLonger) {
  auto goes_on = std::async(std::launch::async,
                            [&] { return CopyAmongOthers(name_ + "/1").wait_for_others(); });
  accepted(listener_);
  EXPECT_FALSE(goes_on.get());
}

TEST_F(CopiesAtOnceTest, TheCommandGetsThePacesOrAReason) {
  for (const CopiesMessage& sent :
       {CopiesMessage{.kind = Kind::kPaces, .paces = {{0.5, 1}, {0.6, 1}}},
        CopiesMessage{.kind = Kind::kWhy, .why = "copy 1 of 2 failed"}}) {
    auto answer = std::async(std::launch::async, [&] { return run_copies(name_, 2); });
    const FileDescriptor socket = accepted(listener_);
    EXPECT_EQ(next_copies_message(socket.get())->number, 2);
    send_message(socket.get(), text_of(sent), -1);
    const CopiesAnswer got = answer.get();
    EXPECT_EQ(got.paces, sent.paces);
    EXPECT_EQ(got.why, sent.why);
  }
  auto interrupted = std::async(std::launch::async, [&] { return run_copies(name_, 2); });
  accepted(listener_);
  EXPECT_THROW(interrupted.get(), Error);
}

}  // namespace
}  // namespace paceline
