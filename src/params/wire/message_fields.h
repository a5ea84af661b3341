// A message's fields, said once for writing and for reading:
//   void fields(auto& wire, Of<Welcome> auto& welcome) { wire(welcome.incarnation, welcome.epoch);
//   }
// The function stands in namespace paceline, as the message does. Format: docs/wire.md.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "params/wire/fields.h"

namespace paceline {

template <typename M, typename T>
concept Of = std::same_as<std::remove_const_t<M>, T>;

template <typename T>
concept WireNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

template <typename M>
std::vector<std::byte> encode_fields(const M& message);

/// Returns the number of bytes of the shortest T. A list can have at most as many items as fit in
/// the rest of the payload at that size.
template <typename T>
std::size_t least_bytes() {
  if constexpr (WireNumber<T>) return sizeof(T);
  static const std::size_t bytes = encode_fields(T{}).size();
  return bytes;
}

/// Writes numbers as they are, a bool as 8 bits, a text after its length, and lists and maps after
/// their count. Writes a type that has `fields` field by field.
class FieldWriter {
 public:
  explicit FieldWriter(WireWriter& writer) : writer_(writer) {}

  void operator()(const auto&... values) { (put(values), ...); }
  /// Writes one of the choices as its index among them, in 8 bits.
  template <typename T, std::size_t N>
  void choice(std::string_view /*name*/, const T& value, const std::array<T, N>& choices) {
    writer_.put(std::uint8_t(std::ranges::find(choices, value) - choices.begin()));
  }

 private:
  void put(WireNumber auto number) { writer_.put(number); }
  void put(std::same_as<bool> auto yes) { writer_.put(std::uint8_t(yes)); }
  void put(const std::string& text) { writer_.put_text(text); }
  template <typename T>
  void put(const std::vector<T>& items) {
    writer_.put(std::uint32_t(items.size()));
    if constexpr (WireNumber<T>) {
      writer_.put_all(std::span(items));
    } else {
      for (const T& item : items) put(item);
    }
  }
  template <typename T>
  void put(const std::map<std::string, T>& items) {
    writer_.put(std::uint32_t(items.size()));
    for (const auto& [name, item] : items) (*this)(name, item);
  }
  template <typename M>
  requires std::is_class_v<M>
  void put(const M& message) { fields(*this, message); }

  WireWriter& writer_;
};

/// Reads what FieldWriter has written, into reused memory. Throws kDataLoss naming the message.
class FieldReader {
 public:
  explicit FieldReader(WireReader& reader) : reader_(reader) {}

  void operator()(auto&... values) { (get(values), ...); }
  template <typename T, std::size_t N>
  void choice(std::string_view name, T& value, const std::array<T, N>& choices) {
    const auto place = reader_.get<std::uint8_t>();
    if (place >= N) reader_.fail(std::string(name) + " " + std::to_string(place) + " is unknown");
    value = choices[place];
  }

 private:
  template <WireNumber T>
  void get(T& number) {
    number = reader_.get<T>();
  }
  void get(bool& yes) { yes = reader_.get<std::uint8_t>() != 0; }
  void get(std::string& text) { text = reader_.get_text(); }
  template <typename T>
  void get(std::vector<T>& items) {
    const std::size_t count = reader_.get_count(least_bytes<T>());
    if constexpr (WireNumber<T>) {
      reader_.get_all(count, items);
    } else {
      items.resize(count);
      for (T& item : items) get(item);
    }
  }
  template <typename T>
  void get(std::map<std::string, T>& items) {
    const std::size_t count = reader_.get_count(least_bytes<std::string>() + least_bytes<T>());
    for (std::size_t i = 0; i < count; ++i) {
      std::string name;
      get(name);
      get(items[name]);
    }
  }
  template <typename M>
  requires std::is_class_v<M>
  void get(M& message) { fields(*this, message); }

  WireReader& reader_;
};

/// Writes the message into a buffer, which keeps its capacity when it is reused.
template <typename M>
void encode_fields(const M& message, std::vector<std::byte>& bytes) {
  WireWriter writer(bytes);
  FieldWriter{writer}(message);
}
template <typename M>
std::vector<std::byte> encode_fields(const M& message) {
  std::vector<std::byte> bytes;
  encode_fields(message, bytes);
  return bytes;
}

/// Reads the message, which must be the whole payload. Throws kDataLoss naming the message.
template <typename M>
void decode_fields(std::span<const std::byte> payload, std::string_view name, M& message) {
  WireReader reader(payload, name);
  FieldReader{reader}(message);
  reader.end();
}
template <typename M>
M decode_fields(std::span<const std::byte> payload, std::string_view name) {
  M message;
  decode_fields(payload, name, message);
  return message;
}

}  // namespace paceline
