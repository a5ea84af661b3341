// The key that the tasks of a job share.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace paceline {

/// Returns the text of a file with a secret: at most `most` bytes, or one byte more if the file is
/// longer. `what` names the file in errors: "the key file". Throws kNotFound, kInvalidArgument for
/// a folder, and kFailedPrecondition for a file that cannot be read, belongs to a user other than
/// this one and root, or may be read or changed by others than its owner. But if another user than
/// root runs this process, a group may read a file of root.
std::string read_secret_file(const std::string& what, const std::string& path, std::size_t most);

/// 32 random bytes. They lie in a page of memory that core dumps leave out, and that is wiped when
/// the last copy ends; copies share it.
class SecretKey {
 public:
  static constexpr std::size_t kBytes = 32;

  /// Makes a key. Throws kInternal if the system has no random numbers.
  static SecretKey make();
  /// Reads the text of a key file. Throws kInvalidArgument, which names `origin` and reveals
  /// nothing of the text.
  static SecretKey parse(std::string_view text, const std::string& origin);
  /// Reads a key file. Throws as read_secret_file does, and kInvalidArgument for a file that is not
  /// a key.
  static SecretKey read(const std::string& path);

  std::span<const std::byte, kBytes> bytes() const;
  /// Writes a key file that only its owner may read. Throws kUsage if the file exists, and
  /// kUnavailable if it cannot be written.
  void write_new(const std::string& path) const;
  /// The text of a key file: one line.
  std::string text() const;
  /// 16 hexadecimal digits that distinguish keys and do not reveal the key. Two tasks with
  /// different keys tell each other their fingerprints unencrypted.
  std::string fingerprint() const;

 private:
  struct Page;
  SecretKey();
  std::shared_ptr<Page> page_;
};

}  // namespace paceline
