#include "net/tls/secret_key.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "net/poll/file_descriptor.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::string_view kMagic = "paceline-key-1:";
constexpr std::size_t kTextBytes =
    kMagic.size() + 2 * SecretKey::kBytes + 1;  // including the end of the line
constexpr std::string_view kFingerprintOf = "the fingerprint of a Paceline key";
constexpr std::size_t kFingerprintBytes = 8;

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

/// Returns the value of a hexadecimal digit in lower case; −1 for any other character.
int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

[[noreturn]] void throw_unreadable(const std::string& file) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kFailedPrecondition;
  throw Error(code, file + " cannot be read: " + std::generic_category().message(errno));
}

/// Refuses a file that others than its owner may read or change. Pipes are for their owner alone,
/// so they pass. A group may read a file of root: Kubernetes mounts a Secret in this way for a user
/// that is not root.
void check_private(int fd, const std::string& file, const std::string& path) {
  struct stat state = {};
  if (::fstat(fd, &state) != 0) throw_unreadable(file);
  if (S_ISDIR(state.st_mode)) throw Error(ErrorCode::kInvalidArgument, file + " is a folder");
  if (state.st_uid != ::geteuid() && state.st_uid != 0)
    throw Error(ErrorCode::kFailedPrecondition,
                file + " belongs to another user (uid " + std::to_string(state.st_uid) + ")");
  const bool of_root = state.st_uid == 0 && ::geteuid() != 0;
  if ((state.st_mode & (of_root ? 037 : 077)) != 0)
    throw Error(ErrorCode::kFailedPrecondition,
                "others may read or change " + file + ": chmod 600 " + path);
}

}  // namespace

std::string read_secret_file(const std::string& what, const std::string& path, std::size_t most) {
  const std::string file = what + " " + path;
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw_unreadable(file);
  check_private(fd.get(), file, path);
  std::string text(most + 1, '\0');  // one more byte shows that a file is too long
  std::size_t end = 0;
  while (end < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + end, text.size() - end);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_unreadable(file);
    if (got == 0) break;
    end += std::size_t(got);
  }
  text.resize(end);
  return text;
}

struct SecretKey::Page {
  Page() : bytes(::sysconf(_SC_PAGESIZE)) {
    start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    ::madvise(start, bytes, MADV_DONTDUMP);
    ::mlock(start, bytes);  // best effort: a limit may forbid it
  }
  ~Page() {
    OPENSSL_cleanse(start, kBytes);
    ::munmap(start, bytes);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(start); }

  const std::size_t bytes;
  void* start;
};

SecretKey::SecretKey() : page_(std::make_shared<Page>()) {}

SecretKey SecretKey::make() {
  SecretKey key;
  if (RAND_priv_bytes(reinterpret_cast<unsigned char*>(key.page_->data()), kBytes) != 1)
    throw Error(ErrorCode::kInternal, "the system has no random numbers for a key");
  return key;
}

SecretKey SecretKey::parse(std::string_view text, const std::string& origin) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const bool right = text.size() == kTextBytes - 1 && text.starts_with(kMagic);
  SecretKey key;
  for (std::size_t i = 0; right && i < kBytes; ++i) {
    const int high = digit_of(text[kMagic.size() + 2 * i]);
    const int low = digit_of(text[kMagic.size() + 2 * i + 1]);
    if (high < 0 || low < 0)
      throw Error(ErrorCode::kInvalidArgument,
                  origin + " is damaged: character " + std::to_string(kMagic.size() + 2 * i + 1) +
                      " or the next is no hexadecimal digit; copy it again");
    key.page_->data()[i] = std::byte(16 * high + low);
  }
  if (right) return key;
  throw Error(ErrorCode::kInvalidArgument,
              origin + " is no key of Paceline: it has " + std::to_string(text.size()) +
                  " characters, where one has " + std::to_string(kTextBytes - 1) +
                  " that begin with " + std::string(kMagic) + "; `paceline key` makes one");
}

SecretKey SecretKey::read(const std::string& path) {
  std::string text;
  try {
    text = read_secret_file("the key file", path, kTextBytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(error.code(), std::string(error.what()) + "; `paceline key` makes one");
  }
  try {
    SecretKey key = parse(text, "the key file " + path);
    OPENSSL_cleanse(text.data(), text.size());
    return key;
  } catch (const Error&) {
    OPENSSL_cleanse(text.data(), text.size());
    throw;
  }
}

void SecretKey::write_new(const std::string& path) const {
  const FileDescriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST) {
    throw Error(ErrorCode::kUsage, "there is a key in " + path +
                                       " already, which jobs may need: --show prints its "
                                       "fingerprint, --replace writes over it");
  }
  std::string lines = fd ? text() : "";
  const bool whole = fd && ::write(fd.get(), lines.data(), lines.size()) == ssize_t(lines.size()) &&
                     ::fsync(fd.get()) == 0;
  const int error = errno;
  OPENSSL_cleanse(lines.data(), lines.size());
  if (whole) return;
  if (fd) ::unlink(path.c_str());
  throw Error(ErrorCode::kUnavailable, "the key file " + path + " cannot be written: " +
                                           std::generic_category().message(error));
}

std::span<const std::byte, SecretKey::kBytes> SecretKey::bytes() const {
  return std::span<const std::byte, kBytes>(page_->data(), kBytes);
}

std::string SecretKey::text() const { return std::string(kMagic) + hexadecimal(bytes()) + "\n"; }

std::string SecretKey::fingerprint() const {
  std::string hashed(kFingerprintOf);
  hashed.append(reinterpret_cast<const char*>(page_->data()), kBytes);
  std::array<std::byte, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(hashed.data()), hashed.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  OPENSSL_cleanse(hashed.data(), hashed.size());
  return hexadecimal(std::span(digest).first(kFingerprintBytes));
}

}  // namespace paceline
