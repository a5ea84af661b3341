// A program that is no ps listens at the address of a ps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/error_of.h"
#include "net/tcp/tcp_socket.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

/// Answers each call as a web server answers a request that it does not understand.
class WebServer {
 public:
  WebServer() : listening_(listen_at({"127.0.0.1", 0})), thread_([this] { run(); }) {}
  ~WebServer() {
    ::shutdown(listening_.fd.get(), SHUT_RDWR);
    thread_.join();
  }
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  const std::string& address() const { return listening_.address; }

 private:
  void run() {
    constexpr std::string_view kAnswer =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
    std::vector<FileDescriptor> calls;
    pollfd called{listening_.fd.get(), POLLIN, 0};
    while (::poll(&called, 1, -1) > 0) {
      FileDescriptor caller(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller && (called.revents & POLLHUP) != 0) return;
      if (!caller) continue;
      ::send(caller.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
      calls.push_back(std::move(caller));
    }
  }

  ListeningSocket listening_;
  std::thread thread_;
};

class StrangerTest : public JobFixture {};

TEST_F(StrangerTest, IsNamedAsOneThatDoesNotSpeakPaceline) {
  const WebServer server;
  make_spec(1, 1);
  spec_.ps = {server.address()};
  PsStoreOptions options = store_options(0);
  options.link_factory = nullptr;
  options.link = "tcp";
  const std::string error = error_of(ErrorCode::kUnavailable, [&] {
    PsStore::join(options, {{.name = "w", .shape = {2}, .rule = Sgd{}}});
  });
  EXPECT_THAT(error, HasSubstr("ps:0 at " + server.address() +
                               " accepts connections but does not speak Paceline: "));
  EXPECT_THAT(error, HasSubstr("garbage"));
}

}  // namespace
}  // namespace paceline
