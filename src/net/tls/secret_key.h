// The key that the tasks of a job share.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace paceline {

/// Returns the text of a file with a secret, at most `most` bytes and one more when it is longer.
/// `what` names it: "the key file". Throws kNotFound, kInvalidArgument for a folder, and
/// kFailedPrecondition for a file that others than its owner may read or change; a group may read
/// one that root owns.
std::string read_secret_file(const std::string& what, const std::string& path, std::size_t most);

/// 32 random bytes. They lie in a page of memory that core dumps leave out and that is wiped when
/// the last copy goes; copies share it.
class SecretKey {
 public:
  static constexpr std::size_t kBytes = 32;

  /// Makes a key. Throws kInternal when the system has no random numbers.
  static SecretKey make();
  /// Reads the text of a key file. Throws kInvalidArgument, which names `origin` and tells nothing
  /// of the text.
  static SecretKey parse(std::string_view text, const std::string& origin);
  /// Reads a key file. Throws kNotFound, kInvalidArgument for a file that is no key, and
  /// kFailedPrecondition for one that others than its owner may read.
  static SecretKey read(const std::string& path);

  std::span<const std::byte, kBytes> bytes() const;
  /// Writes a key file that its owner alone may read. Throws kUsage when there is a file, and
  /// kUnavailable.
  void write_new(const std::string& path) const;
  /// The text of a key file: one line.
  std::string text() const;
  /// 16 hexadecimal digits that tell keys apart and of which the key cannot be computed. Two tasks
  /// that disagree say theirs in the clear.
  std::string fingerprint() const;

 private:
  struct Page;
  SecretKey();
  std::shared_ptr<Page> page_;
};

}  // namespace paceline
