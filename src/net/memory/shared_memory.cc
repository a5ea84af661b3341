#include "net/memory/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

// The seals that a maker sets. The maker sets them after it has made its own writable mapping,
// which the seals do not affect.
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kMakerSeals = kSizeSeals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

std::string why() { return std::strerror(errno); }

std::byte* map(int fd, std::size_t bytes, int protection) {
  void* const data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

/// Returns the bytes of this machine's memory and swap space; 0 if they are unknown. A sparse file
/// can promise more, but the excess can never be written.
std::size_t memory_of_machine() {
  struct sysinfo system {};
  if (::sysinfo(&system) != 0) return 0;
  return (std::size_t(system.totalram) + system.totalswap) * system.mem_unit;
}

/// True unless the file has huge pages. Files of huge pages have a file system of their own, where
/// touching a sealed page may fault.
bool is_of_plain_pages(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

}  // namespace

SharedMemory::SharedMemory(FileDescriptor fd, std::byte* data, std::size_t size)
    : fd_(std::move(fd)), data_(data), size_(size) {}

SharedMemory::~SharedMemory() { ::munmap(data_, size_); }

std::shared_ptr<SharedMemory> SharedMemory::create(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  const auto fail = [&](const char* what) {
    throw Error(ErrorCode::kUnavailable, std::string("no shared memory of ") +
                                             std::to_string(size) + " bytes: " + what + ": " +
                                             why());
  };
  FileDescriptor fd(::memfd_create("paceline", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) fail("memfd_create");
  if (::ftruncate(fd.get(), off_t(size)) != 0) fail("ftruncate");
  std::byte* const data = map(fd.get(), size, PROT_READ | PROT_WRITE);
  if (data == nullptr) fail("mmap");
  std::shared_ptr<SharedMemory> memory(new SharedMemory(std::move(fd), data, size));
  if (::fcntl(memory->fd(), F_ADD_SEALS, kMakerSeals) != 0) fail("sealing");
  return memory;
}

std::shared_ptr<const SharedMemory> SharedMemory::open(FileDescriptor fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || !is_of_plain_pages(fd.get())) {
    throw Error(ErrorCode::kDataLoss, "a peer shares memory that is not sealed");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || status.st_size <= 0) {
    throw Error(ErrorCode::kDataLoss, "a peer shares memory without a size");
  }
  const std::size_t size = std::size_t(status.st_size);
  if (size > memory_of_machine()) {
    throw Error(ErrorCode::kDataLoss, "a peer shares memory of " + std::to_string(size) +
                                          " bytes, more than this machine has");
  }
  std::byte* const data = map(fd.get(), size, PROT_READ);
  if (data == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "cannot map " + std::to_string(size) + " bytes that a peer shares: " + why());
  }
  return std::shared_ptr<const SharedMemory>(new SharedMemory(std::move(fd), data, size));
}

}  // namespace paceline
