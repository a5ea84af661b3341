#include "dashboard/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "dashboard/http_get.h"
#include "net/poll/poll_until.h"
#include "net/tcp/name_lookup.h"
#include "net/testing/certificates.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

const Deadline kSoon = Deadline::after(1h);
const HttpLimits kPatient{.within = 1h};

HttpResponse path_of(const HttpRequest& request) {
  if (request.path == "/throws") throw Error(ErrorCode::kInternal, "no page");
  return {.body = request.path == "/long" ? std::string(8'000'000, 'x') : "at " + request.path};
}

// A client that sends any bytes.
class RawClient {
 public:
  explicit RawClient(const HttpServer& server)
      : fd_(dial(look_up(parse_address(server.address()), kSoon), server.address(), kSoon)) {}
  void say(const std::string& text) const {
    static_cast<void>(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL));
  }
  /// Returns all that the server sends until it closes the connection.
  std::string hear() const {
    std::string heard;
    std::array<char, 4096> bytes;
    while (poll_one_until(fd_.get(), POLLIN, kSoon) == 0) {
      const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (count <= 0) return heard;
      heard.append(bytes.data(), std::size_t(count));
    }
    return heard + "\nand does not end";
  }
  std::string ask(const std::string& text) const {
    say(text);
    return hear();
  }

 private:
  FileDescriptor fd_;
};

TEST(HttpServer, AnswersAtThePortThatItSays) {
  const HttpServer server({"127.0.0.1", 0}, path_of, kPatient);
  EXPECT_EQ(http_get("http://" + server.address() + "/a?b", kSoon).body, "at /a");
  EXPECT_EQ(http_get("http://" + server.address(), kSoon).body, "at /");
  EXPECT_EQ(http_get("http://" + server.address() + "/long", kSoon).body.size(), 8'000'000u);
}

TEST(HttpServer, RefusesWhatIsNoReadingOfAPage) {
  const HttpServer server({"127.0.0.1", 0}, path_of, kPatient);
  const std::string host = "Host: localhost\r\n\r\n";
  EXPECT_THAT(RawClient(server).ask("POST / HTTP/1.1\r\n" + host), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(RawClient(server).ask("DELETE / HTTP/1.1\r\n" + host),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  EXPECT_THAT(RawClient(server).ask("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(RawClient(server).ask("GET /" + std::string(9000, 'a')), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(RawClient(server).ask("GET /throws HTTP/1.1\r\n" + host), HasSubstr("500 Internal"));
  EXPECT_THAT(RawClient(server).ask("HEAD /a HTTP/1.1\r\n" + host),
              HasSubstr("Content-Length: 5\r\n"));
}

TEST(HttpServer, AnotherSitesNameThatLeadsHereIsRefused) {
  const HttpServer server({"127.0.0.1", 0}, path_of, kPatient);
  EXPECT_THAT(RawClient(server).ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(RawClient(server).ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(RawClient(server).ask("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, ClientsThatDawdleHoldUpNobody) {
  const HttpServer server({"127.0.0.1", 0}, path_of, kPatient);
  const RawClient says_nothing(server), says_half(server), reads_nothing(server);
  says_half.say("GET / HT");
  reads_nothing.say("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(http_get("http://" + server.address() + "/a", kSoon).body, "at /a");
}

TEST(HttpServer, AClientThatDawdlesIsLeft) {
  const HttpServer server({"127.0.0.1", 0}, path_of, {.within = 50ms});
  const RawClient says_nothing(server), says_half(server);
  says_half.say("GET / HT");
  EXPECT_EQ(says_nothing.hear(), "");
  EXPECT_EQ(says_half.hear(), "");
}

TEST(HttpServer, OneConnectionTooManyEndsTheOldest) {
  const HttpServer server({"127.0.0.1", 0}, path_of, {.most_connections = 3, .within = 1h});
  const RawClient oldest(server);
  const std::vector<RawClient> others = [&] {
    std::vector<RawClient> all;
    all.reserve(3);
    for (int i = 0; i < 3; ++i) all.emplace_back(server);
    return all;
  }();
  EXPECT_EQ(oldest.hear(), "");
  EXPECT_THAT(others.back().ask("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr("at /a"));
}

TEST(HttpServer, EndsAtOnceWhateverClientsDoAndGivesItsPortBack) {
  std::string address;
  std::vector<RawClient> clients;
  {
    const HttpServer server({"127.0.0.1", 0}, path_of, {.within = 1h});
    address = server.address();
    for (int i = 0; i < 5; ++i) clients.emplace_back(server);
    clients[0].say("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n");
    clients[1].say("GET / HT");
  }
  const HttpServer again(parse_address(address), path_of);
  EXPECT_EQ(again.address(), address);
}

TEST(HttpServer, APortThatIsTakenIsAnError) {
  const HttpServer server({"127.0.0.1", 0}, path_of, kPatient);
  EXPECT_THROW(HttpServer(parse_address(server.address()), path_of), Error);
}

/// A server that encrypts, with a certificate of its own authority.
class HttpsServer : public ::testing::Test {
 protected:
  std::string get(const std::string& path, const std::string& authority) const {
    return http_get("https://" + server_.address() + path, kSoon, {.authority = authority}).body;
  }
  static std::unique_ptr<const HttpsContext> shown(const PemFiles& files) {
    return std::make_unique<const HttpsContext>(
        HttpsContext::of_server({"--cert", files.certificate}, {"--key", files.key}));
  }

  const TemporaryFolder folder_;
  const Signed authority_ = make_certificate("an authority", "", nullptr);
  const std::string ca_ = write_pem(authority_, folder_.path("ca")).certificate;
  const HttpServer server_{{"127.0.0.1", 0},
                           path_of,
                           kPatient,
                           shown(write_pem(make_certificate("page", "IP:127.0.0.1", &authority_),
                                           folder_.path("page")))};
};

TEST_F(HttpsServer, AnswersOverTls) {
  EXPECT_EQ(get("/a", ca_), "at /a");
  EXPECT_EQ(get("/long", ca_).size(), 8'000'000u);
  EXPECT_EQ(get("/" + std::string(5000, 'a'), ca_).size(), 5004u);
}

TEST_F(HttpsServer, TellsWhoeverDoesNotEncryptToDoSo) {
  EXPECT_THAT(RawClient(server_).ask("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("https://")));
  EXPECT_THAT(error_of([&] {
                http_get("https://" + HttpServer({"127.0.0.1", 0}, path_of).address(), kSoon);
              }),
              HasSubstr("127.0.0.1:"));
}

TEST_F(HttpsServer, ThatDoesNotProveWhoItIsIsNotAsked) {
  const Signed other = make_certificate("another authority", "", nullptr);
  const std::string other_ca = write_pem(other, folder_.path("other")).certificate;
  EXPECT_THAT(error_of([&] { get("/a", other_ca); }),
              AllOf(HasSubstr(server_.address()), HasSubstr("certificate is not accepted")));
  EXPECT_THAT(error_of([&] { get("/a", ""); }), HasSubstr("certificate is not accepted"));
  const HttpServer elsewhere(
      {"127.0.0.1", 0}, path_of, kPatient,
      shown(write_pem(make_certificate("page", "DNS:elsewhere.example", &authority_),
                      folder_.path("elsewhere"))));
  EXPECT_THAT(
      error_of([&] { http_get("https://" + elsewhere.address(), kSoon, {.authority = ca_}); }),
      HasSubstr("IP address mismatch"));
}

TEST_F(HttpsServer, ClientsThatDawdleInTheHandshakeHoldUpNobody) {
  const RawClient says_nothing(server_), says_half(server_), says_rubbish(server_);
  says_half.say("\x16\x03\x01");
  says_rubbish.say("\x16\x03\x01" + std::string(300, 'x'));
  EXPECT_EQ(get("/a", ca_), "at /a");
}

TEST(HttpGet, SaysWhatIsWrong) {
  EXPECT_THROW(http_get("ftp://a", kSoon), Error);
  EXPECT_THROW(http_get("http://127.0.0.1:1/", kSoon), Error);
}

}  // namespace
}  // namespace paceline
