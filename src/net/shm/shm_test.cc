// Tests faults that only shm can have: strangers on the Unix socket, and peers whose memory lies.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <mutex>

#include "net/shm/shm_frame_reader.h"
#include "net/shm/shm_handshake.h"
#include "net/shm/shm_sleep.h"
#include "net/shm/shm_socket.h"
#include "net/shm/unix_socket.h"
#include "net/tcp/tcp_link.h"
#include "net/testing/conformance.h"

namespace paceline {
namespace {

using testing::HasSubstr;

Offer offer_of(const std::string& address) {
  TcpLink asks{LinkOptions{}};
  return asks.ask_for_offer(address, soon()).value();
}

bool is_closed_by_peer(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  ::poll(&waiting, 1, 60'000);
  return receive_message(socket, 64).outcome == UnixMessage::Outcome::kClosed;
}

/// A peer that connects correctly, and then misbehaves.
struct HostilePeer {
  explicit HostilePeer(const std::string& address)
      : reached(reach(offer_of(address), address, soon()).value()),
        pair(reached.own, reached.peers) {}
  void write(std::span<const std::byte> bytes) {
    std::memcpy(reached.own->bytes().data() + kShmDataAt + pair.mine().head, bytes.data(),
                bytes.size());
    pair.mine().head += bytes.size();
    ShmSleep(pair).wake_peer(ShmSleep::kData);
  }

  ShmReached reached;
  ShmPair pair;
};

class ShmPeer : public testing::Test {
 protected:
  Error end() { return listener_.receiver(0)->wait_closed(); }
  void wake() { ShmSleep(peer_.pair).wake_peer(ShmSleep::kData); }

  Listener listener_{make_mortal_link("shm"), "127.0.0.1:0"};
  HostilePeer peer_{listener_.address()};
};

TEST_F(ShmPeer, ThatClaimsToHaveWrittenTooMuchIsCutOff) {
  peer_.pair.mine().head = kShmRingBytes + 1;
  wake();
  const Error error = end();
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.what(), HasSubstr("claims to have written 1048577 bytes"));
  EXPECT_TRUE(is_closed_by_peer(peer_.reached.socket.get()));
}

TEST_F(ShmPeer, ThatGoesBackIsCutOff) {
  peer_.write(encode(FrameHeader{}));
  ASSERT_TRUE(listener_.receiver(0)->wait_frames(1));
  peer_.pair.mine().head = 0;
  wake();
  EXPECT_EQ(end().code(), ErrorCode::kDataLoss);
}

TEST_F(ShmPeer, ThatClaimsToHaveReadTooMuchIsCutOff) {
  const auto payload = pattern(2 << 20, 1);
  SentCounter sent;
  ASSERT_NE(listener_.connection(0), nullptr);
  listener_.connection(0)->send({}, payload, &SentCounter::add, &sent);
  peer_.pair.mine().tail = 5 << 20;
  ShmSleep(peer_.pair).wake_peer(ShmSleep::kRoom);
  EXPECT_EQ(end().code(), ErrorCode::kDataLoss);
  EXPECT_TRUE(sent.wait(1));
}

TEST_F(ShmPeer, ThatWritesGarbageIsCutOff) {
  peer_.write(std::as_bytes(std::span("GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n")));
  const Error error = end();
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.what(), HasSubstr("GET / HTTP"));
}

TEST_F(ShmPeer, ThatTearsAHeaderIsCutOff) {
  const auto header = encode(FrameHeader{});
  peer_.write(std::span(header).first(20));
  EXPECT_EQ(end().code(), ErrorCode::kDataLoss);
}

TEST_F(ShmPeer, ThatLiesAboutALengthIsCutOff) {
  peer_.write(encode(FrameHeader{.payload_bytes = kMaxPayloadBytes + 1}));
  EXPECT_THAT(end().what(), HasSubstr(std::to_string(kMaxPayloadBytes + 1)));
}

TEST_F(ShmPeer, ThatDiesInTheMiddleOfAMessageIsNoticed) {
  peer_.write(encode(FrameHeader{.payload_bytes = 1000}));
  peer_.write(pattern(10, 1));
  peer_.reached.socket = FileDescriptor();
  const Error error = end();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("in the middle of a message (10 of 1000 bytes)"));
}

// The word on which the listener's thread sleeps lies in the peer's memory. So the peer can make
// the system move the sleeper to another word.
TEST_F(ShmPeer, ThatMovesTheSleeperElsewhereIsNoticedAllTheSame) {
  ASSERT_NE(listener_.connection(0), nullptr);
  ShmBlock& mine = peer_.pair.mine();
  const auto move = [&] {
    return ::syscall(SYS_futex, &mine.wakes, FUTEX_REQUEUE, 0, INT_MAX, &mine.beats, 0) > 0;
  };
  for (const Deadline deadline = soon(); !move();) ASSERT_FALSE(deadline.passed());
  peer_.reached.socket = FileDescriptor();
  EXPECT_EQ(end().code(), ErrorCode::kUnavailable);
}

TEST_F(ShmPeer, ThatSendsGarbageOverTheSocketIsCutOff) {
  ASSERT_TRUE(send_message(peer_.reached.socket.get(), "x", -1));
  EXPECT_EQ(end().code(), ErrorCode::kDataLoss);
}

TEST_F(ShmPeer, ThatPassesTooManyMemoriesIsCutOff) {
  const auto memory = SharedMemory::create(1);
  for (std::size_t i = 0; i <= kMostSharedWaiting; ++i)
    send_message(peer_.reached.socket.get(), kSharedMessage, memory->fd());
  const Error error = end();
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.what(), HasSubstr("more memories"));
}

TEST_F(ShmPeer, ThatSharesWhatIsNotSealedIsCutOff) {
  const FileDescriptor open_to_all(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open_to_all.get(), 4096), 0);
  ASSERT_TRUE(send_message(peer_.reached.socket.get(), kSharedMessage, open_to_all.get()));
  auto record = encode(FrameHeader{.id = 3});
  std::memcpy(record.data(), &kSharedMagic, sizeof kSharedMagic);
  peer_.write(record);
  const Error error = end();
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.what(), HasSubstr("not sealed"));
}

TEST_F(ShmPeer, ThatSharesNothingThoughItSaysSoIsCutOff) {
  auto record = encode(FrameHeader{.id = 3});
  std::memcpy(record.data(), &kSharedMagic, sizeof kSharedMagic);
  peer_.write(record);
  EXPECT_THAT(end().what(), HasSubstr("did not come"));
}

TEST(ShmLink, TakesAPeerWithoutHeartbeatsForDead) {
  Listener listener(make_mortal_link("shm", std::chrono::milliseconds(100)), "127.0.0.1:0");
  const HostilePeer peer(listener.address());
  EXPECT_THAT(listener.receiver(0)->wait_closed().what(), HasSubstr("no heartbeat for 0.1 s"));
}

TEST(ShmLink, DropsStrangersAndServesOthers) {
  Listener listener(make_mortal_link("shm", std::chrono::milliseconds(500)), "127.0.0.1:0");
  const Offer offer = offer_of(listener.address());
  std::vector<FileDescriptor> strangers;
  strangers.reserve(5);
  for (int i = 0; i < 5; ++i)
    strangers.push_back(dial_abstract(offer.socket_name(), soon()).value());
  const auto memory = SharedMemory::create(kShmMemoryBytes), small = SharedMemory::create(4096);
  const FileDescriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kShmMemoryBytes), 0);
  const auto hello = encode(Preamble{SocketRole::kSharedMemory, offer.token});
  const std::string_view text(reinterpret_cast<const char*>(hello.data()), hello.size());
  send_message(strangers[0].get(), "GET / HTTP/1.1\r\n\r\n", -1);
  introduce(strangers[1].get(), random_token(), *memory);  // does not know the token
  introduce(strangers[2].get(), offer.token, *small);
  send_message(strangers[3].get(), text, unsealed.get());
  // The last stranger stays silent.
  for (const FileDescriptor& one : strangers) EXPECT_TRUE(is_closed_by_peer(one.get()));
  EXPECT_EQ(listener.count(), 0u);

  TestReceiver receiver;
  const auto link = make_mortal_link("shm");
  link->connect(listener.address(), receiver, soon())->send({}, {});
  ASSERT_NE(listener.receiver(0), nullptr);
  EXPECT_TRUE(listener.receiver(0)->wait_frames(1));
}

TEST(ShmLink, RefusesTasksThatShareNothing) {
  TestReceiver receiver;
  Listener over_tcp(make_link("tcp", {}), "127.0.0.1:0");
  const auto link = make_mortal_link("shm");
  try {
    link->connect(over_tcp.address(), receiver, soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(),
                HasSubstr("--link shm: no memory can be shared with " + over_tcp.address()));
  }
  Listener over_shm(make_mortal_link("shm"), "127.0.0.1:0");
  const auto tcp = make_link("tcp", {});
  tcp->connect(over_shm.address(), receiver, soon());
  EXPECT_EQ(receiver.wait_closed().code(), ErrorCode::kUnavailable);
}

// The acceptor refuses even a user who knows the offer, because the memory belongs to the job's
// user.
TEST(ShmAcceptor, RefusesAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  std::mutex mutex;
  std::string refused;
  LinkOptions options;
  options.refused = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    refused += line;
  };
  Listener listener(make_link("shm", options), "127.0.0.1:0");
  const Offer offer = offer_of(listener.address());
  const std::string name = offer.socket_name();
  const pid_t other = ::fork();
  if (other == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(3);
    const auto socket = dial_abstract(name, soon());
    ::_exit(socket && is_closed_by_peer(socket->get()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(listener.count(), 0u);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(refused, HasSubstr("(pid " + std::to_string(other) + ")"));
  EXPECT_THAT(refused, HasSubstr("same user"));
}

}  // namespace
}  // namespace paceline
