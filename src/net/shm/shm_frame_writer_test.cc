#include "net/shm/shm_connection.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>
#include <optional>

#include "base/testing/error_of.h"
#include "net/shm/unix_socket.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// A writer, and its peer's ends of the ring and of the socket.
class ShmFrameWriterTest : public testing::Test {
 protected:
  ShmFrameWriterTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()),
              0);
    peers_end_ = FileDescriptor(ends[1]);
    socket_.emplace(poller_, FileDescriptor(ends[0]));
    writer_.emplace(pair_, reader_, sleep_, *socket_);
  }
  ~ShmFrameWriterTest() override { poller_->stop(); }

  /// Fills the ring until this many bytes of it are left.
  void fill_up_to(std::size_t left) {
    const std::vector<std::byte> payload(kShmRingBytes - left - kFrameHeaderBytes);
    const QueuedFrame frame{.header = {.payload_bytes = std::uint32_t(payload.size())},
                            .payload = payload};
    ASSERT_TRUE(writer_->write_whole(frame));
  }
  bool a_memory_was_passed() {
    return receive_message(peers_end_.get(), kSharedMessage.size()).outcome ==
           UnixMessage::Outcome::kMessage;
  }

  const std::shared_ptr<SharedMemory> own_ = SharedMemory::create(kShmMemoryBytes),
                                      peers_ = SharedMemory::create(kShmMemoryBytes);
  const ShmPair pair_{own_, peers_}, peers_pair_{peers_, own_};
  const ShmReader reader_{pair_};
  ShmReader peers_reader_{peers_pair_};
  ShmSleep sleep_{pair_};
  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>(1);
  FileDescriptor peers_end_;
  std::optional<ShmSocket> socket_;
  std::optional<ShmFrameWriter> writer_;
};

TEST_F(ShmFrameWriterTest, WritesAHeaderWholeThoughFewerBytesAreAllowed) {
  const std::vector<std::byte> payload(100);
  const QueuedFrame frame{.header = {.payload_bytes = 100}, .payload = payload};
  EXPECT_EQ(writer_->write_some(frame, 0, 5), kFrameHeaderBytes);
  EXPECT_EQ(peers_reader_.available(), kFrameHeaderBytes);
}

TEST_F(ShmFrameWriterTest, PassesAMemoryOnceThoughItWaitsForRoom) {
  const QueuedFrame shared{
      .header = {}, .payload = {}, .shared = SharedMemory::create(kShmMemoryBytes)};
  fill_up_to(kFrameHeaderBytes - 1);
  EXPECT_EQ(writer_->write_some(shared, 0, 1000), 0u);
  EXPECT_EQ(writer_->write_some(shared, 0, 1000), 0u);
  EXPECT_FALSE(a_memory_was_passed());
  EXPECT_FALSE(writer_->may_go_on());

  std::vector<std::byte> all(peers_reader_.available());
  peers_reader_.read(all);
  peers_reader_.release();
  EXPECT_TRUE(writer_->may_go_on());
  EXPECT_EQ(writer_->write_some(shared, 0, 1000), kFrameHeaderBytes);
  EXPECT_TRUE(a_memory_was_passed());
  EXPECT_FALSE(a_memory_was_passed());
}

}  // namespace
}  // namespace paceline
