// Tests which callers an encrypted link admits, and what both sides say about a refused caller.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "net/testing/certificates.h"
#include "net/testing/conformance.h"
#include "net/testing/flipping_proxy.h"
#include "net/testing/raw_socket.h"

namespace paceline {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<LinkSecurity> with_key(Tls tls = Tls::kAlways) {
  auto security = std::make_shared<LinkSecurity>();
  security->tls = tls;
  security->key = SecretKey::make();
  return security;
}

/// Makes links with a LinkSecurity, and listens with one of them. Keeps that link's messages about
/// the callers that it refuses.
class TlsLink : public ::testing::Test {
 protected:
  std::unique_ptr<Link> link(std::shared_ptr<const LinkSecurity> security,
                             Duration dead_after = LinkOptions{}.dead_after, int threads = 1) {
    LinkOptions options;
    options.security = std::move(security);
    options.dead_after = dead_after;
    options.threads = threads;
    options.refused = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      refused_ += line + "\n";
      changed_.notify_all();
    };
    return make_link("tcp", options);
  }
  void listen(std::shared_ptr<const LinkSecurity> security,
              Duration dead_after = LinkOptions{}.dead_after, int threads = 1) {
    listener_ =
        std::make_unique<Listener>(link(std::move(security), dead_after, threads), "127.0.0.1:0");
  }
  const std::string& address() const { return listener_->address(); }
  /// Waits for a message about a refused caller, and returns all these messages, one a line.
  std::string refused() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return !refused_.empty(); });
    return refused_;
  }
  /// Connects and sends a frame. Returns why that failed; empty: the frame has arrived.
  std::string try_from(const std::shared_ptr<const LinkSecurity>& security,
                       const std::string& address) {
    TestReceiver receiver;
    const auto from = link(security);
    const std::size_t before = listener_->count();
    try {
      const auto connection = from->connect(address, receiver, soon());
      connection->send({}, {});
      if (listener_->count() > before || expects_frames_) {
        EXPECT_TRUE(listener_->receiver(before)->wait_frames(1));
        return "";
      }
      return receiver.wait_closed().what();
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::string try_from(const std::shared_ptr<const LinkSecurity>& security) {
    return try_from(security, address());
  }
  void expect_served(const std::shared_ptr<const LinkSecurity>& security) {
    expects_frames_ = true;
    EXPECT_EQ(try_from(security), "");
    expects_frames_ = false;
  }

  std::unique_ptr<Listener> listener_;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string refused_;
  bool expects_frames_ = false;
};

TEST_F(TlsLink, WithAnotherKeyIsRefusedAndBothKeysAreNamedByFingerprint) {
  const auto here = with_key(), there = with_key();
  listen(here);
  EXPECT_THAT(try_from(there), AllOf(HasSubstr(address()), HasSubstr(there->key->fingerprint()),
                                     HasSubstr("`paceline key --show`")));
  EXPECT_THAT(refused(), AllOf(HasSubstr("127.0.0.1:"), HasSubstr(here->key->fingerprint()),
                               HasSubstr(there->key->fingerprint())));
  for (const auto& security : {here, there})
    EXPECT_THAT(refused(), Not(HasSubstr(security->key->text().substr(15, 16))));
  expect_served(here);
}

TEST_F(TlsLink, ThatSeveralThreadsReadBringsWhatCameWithTheProof) {
  const auto security = with_key();
  listen(security, LinkOptions{}.dead_after, 4);
  for (int i = 0; i < 20; ++i) expect_served(security);
}

TEST_F(TlsLink, WithoutAKeyIsRefusedBeforeAWordIsSaid) {
  const auto here = with_key();
  listen(here);
  auto none = std::make_shared<LinkSecurity>();
  none->tls = Tls::kAlways;
  EXPECT_THAT(try_from(none),
              AllOf(HasSubstr(address()), HasSubstr("`paceline key`"), HasSubstr("--insecure")));
  EXPECT_EQ(listener_->count(), 0u);
}

TEST_F(TlsLink, ThatIsPlainIsRefused) {
  const auto here = with_key();
  listen(here);
  EXPECT_THAT(try_from(nullptr),
              AllOf(HasSubstr(address()), HasSubstr("only callers who encrypt")));
  EXPECT_THAT(refused(), AllOf(HasSubstr("127.0.0.1:"), HasSubstr("does not encrypt")));
  EXPECT_EQ(listener_->count(), 0u);
  expect_served(here);
}

TEST_F(TlsLink, ToOneThatIsPlainEndsInWords) {
  listen(nullptr);
  EXPECT_THAT(try_from(with_key()), AllOf(HasSubstr(address()), HasSubstr("closed the connection"),
                                          HasSubstr("--insecure")));
  EXPECT_THAT(refused(), AllOf(HasSubstr("127.0.0.1:"), HasSubstr("--key-file")));
  expect_served(nullptr);
}

// Within a host, connections need not be encrypted, but a caller may encrypt.
TEST_F(TlsLink, WithinAHostIsPlainUnlessAsked) {
  const auto here = with_key(Tls::kOffHost);
  listen(here);
  expect_served(here);
  expect_served(nullptr);
  auto always = std::make_shared<LinkSecurity>(*here);
  always->tls = Tls::kAlways;
  expect_served(always);
}

class TlsCertificates : public TlsLink {
 protected:
  std::shared_ptr<LinkSecurity> with(const std::string& name, const Signed& task,
                                     const Signed& authority) const {
    auto security = std::make_shared<LinkSecurity>();
    security->tls = Tls::kAlways;
    const PemFiles own = write_pem(task, folder_.path(name));
    security->certificates = LinkSecurity::Certificates{
        own.certificate, own.key, write_pem(authority, folder_.path(name + "-ca")).certificate};
    return security;
  }

  const TemporaryFolder folder_;
  const Signed authority_ = make_certificate("the job's authority", "", nullptr);
  const Signed stranger_ = make_certificate("another authority", "", nullptr);
  const Signed right_ = make_certificate("a task", "IP:127.0.0.1", &authority_);
};

TEST_F(TlsCertificates, OfOneAuthorityAreServed) {
  const auto security = with("right", right_, authority_);
  listen(security);
  expect_served(security);
  const Signed other = make_certificate("another task", "DNS:elsewhere.example", &authority_);
  expect_served(with("other", other, authority_));  // because callers may come from anywhere
}

TEST_F(TlsCertificates, OfAnotherAuthorityAreRefused) {
  listen(with("right", right_, authority_));
  const Signed strange = make_certificate("a task", "IP:127.0.0.1", &stranger_);
  EXPECT_THAT(try_from(with("strange", strange, authority_)),
              AllOf(HasSubstr(address()), HasSubstr("unknown ca")));
  EXPECT_THAT(refused(), AllOf(HasSubstr("127.0.0.1:"), HasSubstr("certificate is not accepted")));
  EXPECT_THAT(try_from(with("doubts", right_, stranger_)),
              AllOf(HasSubstr(address()), HasSubstr("certificate is not accepted")));
}

TEST_F(TlsCertificates, OfAnotherHostAreRefused) {
  const Signed elsewhere = make_certificate("a task", "DNS:elsewhere.example", &authority_);
  listen(with("elsewhere", elsewhere, authority_));
  EXPECT_THAT(try_from(with("right", right_, authority_)),
              AllOf(HasSubstr(address()), HasSubstr("IP address mismatch")));
}

TEST_F(TlsCertificates, ThatHaveExpiredAreRefused) {
  const Signed old = make_certificate("a task", "IP:127.0.0.1", &authority_, -3600);
  listen(with("old", old, authority_));
  EXPECT_THAT(try_from(with("right", right_, authority_)), HasSubstr("certificate has expired"));
}

TEST_F(TlsCertificates, AndKeysDoNotMeet) {
  listen(with("right", right_, authority_));
  EXPECT_THAT(try_from(with_key()), AllOf(HasSubstr(address()), HasSubstr("certificate")));
  listen(with_key());
  EXPECT_THAT(try_from(with("right", right_, authority_)), HasSubstr(address()));
}

TEST_F(TlsCertificates, ThatCannotBeReadAreNamedWithTheirFlag) {
  const auto good = with("right", right_, authority_);
  const std::string rubbish = folder_.path("rubbish");
  std::ofstream(rubbish) << "no certificate";
  std::filesystem::permissions(rubbish, kOwnerOnly);
  const std::string other_key = with("other", stranger_, authority_)->certificates->key;
  const auto error_with = [&](const std::function<void(LinkSecurity::Certificates&)>& change) {
    auto bad = std::make_shared<LinkSecurity>(*good);
    change(*bad->certificates);
    return error_of([&] { link(bad); });
  };
  EXPECT_THAT(error_with([&](auto& files) { files.certificate = rubbish; }),
              AllOf(HasSubstr("--tls-cert"), HasSubstr(rubbish)));
  EXPECT_THAT(error_with([&](auto& files) { files.key = rubbish; }), HasSubstr("--tls-key"));
  EXPECT_THAT(error_with([&](auto& files) { files.key = other_key; }), HasSubstr("--tls-key"));
  EXPECT_THAT(error_with([&](auto& files) { files.authority = folder_.path("none"); }),
              AllOf(HasSubstr("--tls-ca"), HasSubstr(folder_.path("none"))));
  std::filesystem::permissions(good->certificates->key, kOwnerOnly | std::filesystem::perms(0044));
  EXPECT_THAT(error_with([](auto&) {}),
              AllOf(HasSubstr("others may read or change --tls-key " + good->certificates->key),
                    HasSubstr("chmod 600")));
}

// Tests with hostile callers.

TEST_F(TlsLink, OfAnOldVersionIsRefused) {
  const auto here = with_key();
  listen(here);
  RawSocket socket(address());
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  SSL* const old = SSL_new(context);
  const FileDescriptor fd = socket.release();
  SSL_set_fd(old, fd.get());
  EXPECT_NE(SSL_connect(old), 1);
  SSL_free(old);
  SSL_CTX_free(context);
  EXPECT_THAT(refused(), HasSubstr("only versions of TLS before 1.3"));
  expect_served(here);
}

/// Passes calls on to a task, and keeps the bytes that each caller sent.
class Recorder {
 public:
  explicit Recorder(const std::string& to) : listening_(listen_at({"127.0.0.1", 0})), to_(to) {
    thread_ = std::thread([this] { run(); });
  }
  ~Recorder() { finish(); }
  const std::string& address() const { return listening_.address; }
  /// Stops taking calls, and returns the bytes that callers sent, by call.
  std::vector<std::string> said() {
    finish();
    return said_;
  }

 private:
  void finish() {
    if (!thread_.joinable()) return;
    ::shutdown(listening_.fd.get(), SHUT_RDWR);
    thread_.join();
  }
  void run() {
    std::vector<std::thread> calls;
    std::mutex mutex;
    while (true) {
      const int caller = ::accept(listening_.fd.get(), nullptr, nullptr);
      if (caller < 0 && errno == EAGAIN) {
        pollfd ready{listening_.fd.get(), POLLIN, 0};
        ::poll(&ready, 1, 100);
        if ((ready.revents & (POLLHUP | POLLERR)) == 0) continue;
      }
      if (caller < 0) break;
      calls.emplace_back([&, caller] {
        std::string words = pass_on(FileDescriptor(caller));
        const std::lock_guard lock(mutex);
        said_.push_back(std::move(words));
      });
    }
    for (std::thread& call : calls) call.join();
  }
  std::string pass_on(FileDescriptor caller) const {
    std::string words;
    const FileDescriptor task = RawSocket(to_).release();
    pollfd ends[] = {{caller.get(), POLLIN, 0}, {task.get(), POLLIN, 0}};
    while (::poll(ends, 2, 60'000) > 0) {
      for (int i = 0; i < 2; ++i) {
        if (ends[i].revents == 0) continue;
        std::array<char, 4096> bytes;
        const ssize_t got = ::recv(ends[i].fd, bytes.data(), bytes.size(), 0);
        if (got <= 0) return words;
        if (i == 0) words.append(bytes.data(), std::size_t(got));
        (void)!::send(ends[1 - i].fd, bytes.data(), std::size_t(got), MSG_NOSIGNAL);
      }
    }
    return words;
  }

  ListeningSocket listening_;
  const std::string to_;
  std::vector<std::string> said_;
  std::thread thread_;
};

TEST_F(TlsLink, ThatIsReplayedIsRefused) {
  const auto here = with_key();
  listen(here);
  Recorder recorder(address());
  {
    TestReceiver receiver;
    const auto from = link(here);
    const auto connection = from->connect(recorder.address(), receiver, soon());
    connection->send({}, {});
    ASSERT_NE(listener_->receiver(0), nullptr);
    ASSERT_TRUE(listener_->receiver(0)->wait_frames(1));
    connection->close(soon());
    receiver.wait_closed();
    listener_->receiver(0)->wait_closed();
  }
  const std::vector<std::string> said = recorder.said();
  ASSERT_EQ(said.size(), 2u);
  for (const std::string& words : said) {
    ASSERT_GT(words.size(), 100u);
    RawSocket replayed(address());
    replayed.write(words);
    EXPECT_THAT(refused(), HasSubstr("does not prove that it belongs to the job"));
  }
  EXPECT_EQ(listener_->count(), 1u) << "no second connection";
  expect_served(here);
}

TEST_F(TlsLink, ThatStopsInTheMiddleOfTheProofIsDropped) {
  const auto here = with_key();
  listen(here, std::chrono::milliseconds(200));
  RawSocket stopped(address());
  stopped.write(std::string("\x16\x03\x01\x00\x80", 5));
  EXPECT_TRUE(stopped.is_closed_by_peer());
  EXPECT_THAT(refused(), AllOf(HasSubstr("127.0.0.1:"), HasSubstr("it stopped before")));
  expect_served(here);
}

TEST_F(TlsLink, ToOneThatStopsInTheMiddleEndsAtTheDeadline) {
  const ListeningSocket silent = listen_at({"127.0.0.1", 0});
  TestReceiver receiver;
  EXPECT_THAT(error_of(ErrorCode::kDeadlineExceeded,
                       [&] {
                         link(with_key())
                             ->connect(silent.address, receiver,
                                       Deadline::after(std::chrono::milliseconds(100)));
                       }),
              HasSubstr(silent.address));
}

// Whichever bit changes on the way, in either direction, no frame arrives that was not sent, and
// the connection ends on both sides.
TEST_F(TlsLink, OverABadCableBringsNothingThatWasNotSent) {
  const auto here = with_key();
  listen(here);
  FlippingProxy cable(address());
  // Each call sends the same payload, because the listener may accept a connection after its caller
  // has given up.
  const auto payload = pattern(5000, 1);
  int ended = 0;
  for (const std::size_t byte : {0, 1, 3, 4, 30, 60, 100, 200, 300, 400, 500, 600, 1000, 3000}) {
    for (const Way way : {Way::kToListener, Way::kToCaller}) {
      SCOPED_TRACE(byte);
      cable.set(Flip{way, byte, int(byte % 8)});
      const std::size_t before = listener_->count();
      TestReceiver receiver;
      try {
        const auto from = link(here);
        const auto connection = from->connect(cable.address(), receiver, soon());
        connection->send({.step = 1}, payload);
        connection->send({.step = 2}, payload);
        connection->close(soon());
        receiver.wait_closed();
      } catch (const Error&) {
        ++ended;
      }
      for (std::size_t i = before; i < listener_->count(); ++i) {
        ended += int(listener_->receiver(i)->wait_closed().code() == ErrorCode::kDataLoss);
        for (const auto& frame : listener_->receiver(i)->frames())
          EXPECT_EQ(frame.payload, payload);
      }
    }
  }
  cable.set(std::nullopt);
  EXPECT_GT(ended, 10);
  expect_served(here);
}

}  // namespace
}  // namespace paceline
