// TLS streams over a pair of sockets.
#include "net/tls/tls_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "net/testing/conformance.h"
#include "net/tls/tls_context.h"

namespace paceline {
namespace {

constexpr std::uintptr_t kMostSearched = 1 << 30;

class TlsPair : public ::testing::Test {
 protected:
  void make(std::int64_t renew_after_bytes = std::int64_t(1) << 40) {
    auto security = std::make_shared<LinkSecurity>(*test_security());
    security->renew_after_bytes = renew_after_bytes;
    context_ = std::make_unique<TlsContext>(security);
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    caller_fd_ = FileDescriptor(ends[0]);
    answerer_fd_ = FileDescriptor(ends[1]);
    caller_ = context_->call(ends[0], "127.0.0.1:1");
    answerer_ = context_->answer(ends[1]);
    for (int turn = 0; turn < 8; ++turn) {
      const auto caller = caller_->open(), answerer = answerer_->open();
      if (caller == ByteStream::Need::kNothing && answerer == ByteStream::Need::kNothing) return;
    }
    FAIL() << "no handshake";
  }
  /// Writes the bytes from a thread, in pieces of odd sizes, and reads them here. Returns the bytes
  /// that arrived.
  std::vector<std::byte> carry(std::span<const std::byte> bytes) const {
    std::thread writer([&] {
      for (std::size_t done = 0, piece = 1; done < bytes.size(); piece = piece * 3 % 100'003 + 1) {
        const std::size_t first = std::min(piece, bytes.size() - done);
        const std::size_t second = std::min(piece / 2, bytes.size() - done - first);
        std::byte* const data = const_cast<std::byte*>(bytes.data()) + done;
        const iovec parts[] = {{data, first}, {data + first, second}};
        const std::ptrdiff_t written = caller_->write(parts);
        if (written > 0) done += std::size_t(written);
        if (written < 0) std::this_thread::yield();
      }
    });
    std::vector<std::byte> come(bytes.size());
    for (std::size_t at = 0; at < come.size();) {
      const std::size_t half = (come.size() - at + 1) / 2;
      const iovec parts[] = {{come.data() + at, half},
                             {come.data() + at + half, come.size() - at - half}};
      const std::ptrdiff_t got = answerer_->read(parts);
      if (got > 0) at += std::size_t(got);
      if (got < 0) std::this_thread::yield();
    }
    writer.join();
    return come;
  }
  TlsStream& caller() const { return static_cast<TlsStream&>(*caller_); }

  std::unique_ptr<TlsContext> context_;
  FileDescriptor caller_fd_, answerer_fd_;
  std::unique_ptr<ByteStream> caller_, answerer_;
};

TEST_F(TlsPair, CarriesBytesInAnyPieces) {
  make();
  const auto bytes = pattern(5'000'000, 3);
  EXPECT_EQ(carry(bytes), bytes);
  EXPECT_EQ(caller().renewals(), 0);
}

TEST_F(TlsPair, RenewsItsKeysAndLosesNothing) {
  make(100'000);
  const auto bytes = pattern(5'000'000, 4);
  EXPECT_EQ(carry(bytes), bytes);
  EXPECT_GE(caller().renewals(), 40);
  EXPECT_LE(caller().renewals(), 50);
}

// Bytes that find no room in the socket are passed to `write` again later, but counted only once.
TEST_F(TlsPair, WritesAgainWhatFoundNoRoom) {
  make();
  const auto bytes = pattern(8'000'000, 5);
  std::size_t done = 0;
  while (true) {
    const iovec rest{const_cast<std::byte*>(bytes.data()) + done, bytes.size() - done};
    const std::ptrdiff_t written = caller_->write({&rest, 1});
    if (written < 0) break;
    done += std::size_t(written);
  }
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_LT(done, bytes.size());
  std::vector<std::byte> come(bytes.size());
  for (std::size_t at = 0; at < come.size();) {
    const iovec room{come.data() + at, come.size() - at};
    const std::ptrdiff_t got = answerer_->read({&room, 1});
    if (got > 0) at += std::size_t(got);
    const iovec rest{const_cast<std::byte*>(bytes.data()) + done, bytes.size() - done};
    const std::ptrdiff_t written = done < bytes.size() ? caller_->write({&rest, 1}) : 0;
    if (written > 0) done += std::size_t(written);
  }
  EXPECT_EQ(come, bytes);
}

TEST_F(TlsPair, EndsWithAWordAndWithoutOne) {
  for (const bool with_word : {true, false}) {
    make();
    std::byte byte{7};
    const iovec part{&byte, 1};
    ASSERT_EQ(caller_->write({&part, 1}), 1);
    if (with_word) caller_->shut_writing();
    caller_.reset();
    caller_fd_ = FileDescriptor();
    EXPECT_EQ(answerer_->read({&part, 1}), 1);
    errno = 0;
    EXPECT_EQ(answerer_->read({&part, 1}), with_word ? 0 : -1);
    EXPECT_EQ(errno, with_word ? 0 : ECONNRESET) << "a stream that is cut is no stream that ends";
  }
}

TEST_F(TlsPair, RefusesARecordOfWhichAnyByteWasChanged) {
  for (const int byte : {0, 3, 5, 20, 120}) {
    make();
    auto bytes = pattern(100, 1);
    const iovec all{bytes.data(), bytes.size()};
    // The test takes the record out of the socket, changes it and puts it back.
    ASSERT_EQ(caller_->write({&all, 1}), 100);
    std::array<unsigned char, 4096> wire;
    const ssize_t length = ::recv(answerer_fd_.get(), wire.data(), wire.size(), MSG_DONTWAIT);
    ASSERT_GT(length, byte);
    wire[std::size_t(byte)] ^= 1;
    ASSERT_EQ(::send(caller_fd_.get(), wire.data(), std::size_t(length), 0), length);
    ::shutdown(caller_fd_.get(), SHUT_WR);
    std::ptrdiff_t got = -2;
    try {
      got = answerer_->read({&all, 1});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
    }
    EXPECT_TRUE(got == -2 || (got == -1 && errno == ECONNRESET)) << byte << ": " << got;
  }
}

// The job's key lies only in pages that core dumps leave out.
TEST_F(TlsPair, LeavesNoKeyWhereCoreDumpsLook) {
  make();
  const auto bytes = pattern(1000, 1);
  EXPECT_EQ(carry(bytes), bytes);
  const auto key = test_security()->key->bytes();
  std::ifstream smaps("/proc/self/smaps");
  std::ifstream memory("/proc/self/mem", std::ios::binary);
  if (!smaps || !memory) GTEST_SKIP() << "this system shows no process its memory";
  int searched = 0, found_in_left_out = 0;
  std::uintptr_t begin = 0, end = 0;
  bool writable = false;
  for (std::string line; std::getline(smaps, line);) {
    char dash = 0;
    std::string mode;
    std::uintptr_t from = 0, to = 0;
    std::istringstream words(line);
    if (words >> std::hex >> from >> dash >> to >> mode && dash == '-') {
      begin = from;
      end = to;
      writable = mode.starts_with("rw");
    }
    if (!line.starts_with("VmFlags:") || !writable) continue;
    const bool left_out = line.find(" dd") != std::string::npos;
    if (left_out && end - begin > kMostSearched)
      // This leaves out the shadow memory of a sanitizer.
      continue;
    std::vector<char> content(end - begin);
    memory.clear();
    memory.seekg(std::streamoff(begin));
    memory.read(content.data(), std::streamsize(content.size()));
    content.resize(std::size_t(memory.gcount()));
    const char* const first = reinterpret_cast<const char*>(key.data());
    const bool found =
        std::search(content.begin(), content.end(), first, first + key.size()) != content.end();
    ++searched;
    found_in_left_out += int(found && left_out);
    EXPECT_FALSE(found && !left_out) << line << " at " << std::hex << begin;
    std::ranges::fill(content, 0);
  }
  EXPECT_GT(searched, 5);
  EXPECT_GE(found_in_left_out, 1) << "the search finds what is there";
}

}  // namespace
}  // namespace paceline
