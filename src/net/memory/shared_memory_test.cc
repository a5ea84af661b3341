#include "net/memory/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

FileDescriptor another(int fd) { return FileDescriptor(::dup(fd)); }

std::string refusal(FileDescriptor fd) {
  return error_of(ErrorCode::kDataLoss, [&] { SharedMemory::open(std::move(fd)); });
}

TEST(SharedMemory, ShowsAReaderWhatItsMakerWrites) {
  const auto maker = SharedMemory::create(10'000);
  EXPECT_EQ(maker->bytes()[9'999], std::byte{0});
  const auto reader = SharedMemory::open(another(maker->fd()));
  ASSERT_EQ(reader->size(), 10'000u);
  EXPECT_NE(reader->bytes().data(), maker->bytes().data());
  maker->bytes()[5'000] = std::byte{7};
  EXPECT_EQ(reader->bytes()[5'000], std::byte{7});
}

TEST(SharedMemory, OutlivesItsMaker) {
  auto maker = SharedMemory::create(100);
  const auto reader = SharedMemory::open(another(maker->fd()));
  maker->bytes()[3] = std::byte{3};
  maker.reset();
  EXPECT_EQ(reader->bytes()[3], std::byte{3});
}

TEST(SharedMemory, CanBeWrittenByItsMakerOnlyAndKeepsItsSize) {
  const auto maker = SharedMemory::create(100);
  const FileDescriptor fd = another(maker->fd());
  EXPECT_EQ(::mmap(nullptr, 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
  EXPECT_EQ(::pwrite(fd.get(), "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(::ftruncate(fd.get(), 200), -1);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST(SharedMemory, IsRefusedWhenItsSizeCouldChange) {
  FileDescriptor fd(::memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), 100), 0);
  EXPECT_THAT(refusal(another(fd.get())), HasSubstr("not sealed"));
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(refusal(another(fd.get())), HasSubstr("not sealed"));
  EXPECT_THAT(refusal(FileDescriptor(::open("/dev/null", O_RDONLY))), HasSubstr("not sealed"));
}

TEST(SharedMemory, IsRefusedWhenItIsEmpty) {
  FileDescriptor fd(::memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_THAT(refusal(std::move(fd)), HasSubstr("without a size"));
}

TEST(SharedMemory, BeyondTheMachinesMemoryIsRefused) {
  FileDescriptor fd(::memfd_create("holes", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 50), 0);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_THAT(refusal(std::move(fd)), HasSubstr("1125899906842624 bytes, more than this machine"));
}

TEST(SharedMemory, OfHugePagesIsRefused) {
  FileDescriptor fd(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!fd || ::ftruncate(fd.get(), 2 << 20) != 0) GTEST_SKIP() << "no huge pages here";
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_THAT(refusal(std::move(fd)), HasSubstr("not sealed"));
}

}  // namespace
}  // namespace paceline
