// Tests which kind of link "auto" chooses, and when it gives up.
#include <sys/resource.h>

#include <csignal>

#include "base/testing/error_of.h"
#include "net/tcp/tcp_socket.h"
#include "net/testing/conformance.h"

namespace paceline {
namespace {

using testing::HasSubstr;

/// While this object lives, files (including memory files) cannot grow beyond `bytes` bytes.
class LimitedFiles {
 public:
  explicit LimitedFiles(rlim_t bytes) : before_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit limited{bytes, limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~LimitedFiles() {
    setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, before_);
  }
  LimitedFiles(const LimitedFiles&) = delete;
  LimitedFiles& operator=(const LimitedFiles&) = delete;

 private:
  void (*const before_)(int);
  rlimit limit_ = {};
};

TEST(AutoLink, TakesTcpWhereMemoryCannotBeShared) {
  const auto payload = pattern(1 << 16, 1);
  for (const bool listener_may : {true, false}) {
    auto limited = std::make_unique<LimitedFiles>(4096);
    if (listener_may) limited.reset();
    Listener listener{make_link("auto", {}), "127.0.0.1:0"};
    if (listener_may) limited = std::make_unique<LimitedFiles>(4096);
    TestReceiver receiver;
    const auto link = make_link("auto", {});
    const auto connection = link->connect(listener.address(), receiver, soon());
    EXPECT_FALSE(connection->can_share());
    connection->send({}, payload);
    EXPECT_TRUE(listener.receiver(0)->wait_frames(1));
    EXPECT_THROW(make_link("shm", {})->connect(listener.address(), receiver, soon()), Error);
  }
}

TEST(AutoLink, SaysThatSomebodyAcceptsAndSaysNothing) {
  const ListeningSocket silent = listen_at({"127.0.0.1", 0});
  TestReceiver receiver;
  for (const char* kind : {"auto", "shm"}) {
    const auto link = make_link(kind, {});
    EXPECT_THAT(error_of(ErrorCode::kDeadlineExceeded,
                         [&] {
                           link->connect(silent.address, receiver,
                                         Deadline::after(std::chrono::milliseconds(50)));
                         }),
                HasSubstr(silent.address + " accepts connections but said nothing"))
        << kind;
  }
}

TEST(AutoLink, EndsATryWhenItsCallerIsToldTo) {
  const ListeningSocket silent = listen_at({"127.0.0.1", 0});
  const EventFd told;
  told.raise();
  TestReceiver receiver;
  const auto link = make_mortal_link("auto");
  const Deadline deadline = soon().or_when_readable(told.fd());
  try {
    link->connect(silent.address, receiver, deadline);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.what(), HasSubstr(silent.address));
  }
  EXPECT_FALSE(deadline.passed());
}

TEST(AutoLink, TakesTcpWhereTheOtherWantsIt) {
  Listener listener(make_link("tcp", {}), "127.0.0.1:0");
  TestReceiver receiver;
  const auto link = make_link("auto", {});
  const auto connection = link->connect(listener.address(), receiver, soon());
  EXPECT_FALSE(connection->can_share());
  connection->send({}, {});
  ASSERT_NE(listener.receiver(0), nullptr);
  EXPECT_TRUE(listener.receiver(0)->wait_frames(1));
}

}  // namespace
}  // namespace paceline
