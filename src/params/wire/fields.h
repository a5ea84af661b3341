// Small payloads on the wire: a writer that appends, and a reader that never trusts a length. All
// numbers are little-endian. Format: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace paceline {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

/// The length of the longest text.
constexpr std::size_t kMostTextBytes = 0xffff;

/// Appends to a caller's buffer, which keeps its capacity when it is reused.
class WireWriter {
 public:
  enum Mode : std::uint8_t { kFresh, kAppend };
  explicit WireWriter(std::vector<std::byte>& out, Mode mode = kFresh) : out_(out) {
    if (mode == kFresh) out_.clear();
  }

  template <typename T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  /// Writes elements without their count.
  template <typename T>
  void put_all(std::span<const T> values) {
    put_bytes(std::as_bytes(values));
  }
  /// Writes the length of a text as 16 bits, then its bytes. Throws kInvalidArgument when the text
  /// is longer than 16 bits can count.
  void put_text(std::string_view text);

 private:
  void put_bytes(std::span<const std::byte> bytes) {
    const std::size_t at = out_.size();  // insert() at the end triggers a false warning of g++ 12
    out_.resize(at + bytes.size());
    if (!bytes.empty()) std::memcpy(out_.data() + at, bytes.data(), bytes.size());
  }
  std::vector<std::byte>& out_;
};

/// Reads a payload. Throws kDataLoss, naming the message, when the payload is shorter or longer
/// than its fields.
class WireReader {
 public:
  WireReader(std::span<const std::byte> bytes, std::string_view message)
      : bytes_(bytes), message_(message) {}

  template <typename T>
  T get() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value;
    std::memcpy(&value, take(1, sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// Reads into a caller's vector, which keeps its capacity when it is reused.
  template <typename T>
  void get_all(std::size_t count, std::vector<T>& values) {
    const std::span<const std::byte> bytes = take(count, sizeof(T));
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  template <typename T>
  std::vector<T> get_all(std::size_t count) {
    std::vector<T> values;
    get_all(count, values);
    return values;
  }
  /// Reads a count of items. Throws unless the rest of the payload has at least `least_bytes` for
  /// each.
  std::size_t get_count(std::size_t least_bytes);
  std::string get_text();
  std::span<const std::byte> rest() const { return bytes_; }
  /// Throws when bytes are left.
  void end() const;
  [[noreturn]] void fail(std::string_view why) const;

 private:
  std::span<const std::byte> take(std::size_t count, std::size_t size);
  std::span<const std::byte> bytes_;
  std::string_view message_;
};

}  // namespace paceline
