#include "launch/ssh/host_message.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "paceline/error.h"

namespace paceline {

namespace {

// A pipe takes up to 4096 bytes all at once or not at all.
constexpr std::size_t kMostChunk = 4000;
constexpr std::uint32_t kMostMessage = 1u << 30;

template <typename T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

[[noreturn]] void fail_message() {
  throw Error(ErrorCode::kDataLoss, "what arrived through ssh is no message of paceline");
}

/// Takes values off the beginning of a text.
class Taker {
 public:
  explicit Taker(std::string_view text) : rest_(text) {}
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) fail_message();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::string bytes_of(const HostMessage& message) {
  std::string body;
  append(body, std::uint8_t(message.kind));
  append(body, message.task);
  append(body, message.number);
  append(body, std::uint32_t(message.texts.size()));
  for (const std::string& text : message.texts) {
    append(body, std::uint32_t(text.size()));
    body += text;
  }
  std::string all;
  append(all, std::uint32_t(body.size()));
  return all + body;
}

}  // namespace

std::vector<std::string> chunks_of(const HostMessage& message) {
  const std::string all = bytes_of(message);
  std::vector<std::string> chunks;
  for (std::size_t at = 0; at < all.size(); at += kMostChunk) {
    const std::size_t size = std::min(kMostChunk, all.size() - at);
    std::string& chunk = chunks.emplace_back();
    append(chunk, std::uint16_t(size));
    chunk.append(all, at, size);
  }
  return chunks;
}

std::string pulse() { return std::string(sizeof(std::uint16_t), '\0'); }

void HostMessageReader::join_chunks() {
  std::size_t at = 0;
  for (std::uint16_t size = 0; bytes_.size() - at >= sizeof size; at += sizeof size + size) {
    std::memcpy(&size, bytes_.data() + at, sizeof size);
    if (bytes_.size() - at - sizeof size < size) break;
    joined_.append(bytes_, at + sizeof size, size);
  }
  bytes_.erase(0, at);
}

std::optional<HostMessage> HostMessageReader::next() {
  join_chunks();
  std::uint32_t size = 0;
  if (joined_.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, joined_.data(), sizeof size);
  if (size > kMostMessage) fail_message();
  if (joined_.size() - sizeof size < size) return std::nullopt;
  Taker taker(std::string_view(joined_).substr(sizeof size, size));
  HostMessage message;
  const auto kind = taker.number<std::uint8_t>();
  if (kind > std::uint8_t(HostMessage::Kind::kEnded)) fail_message();
  message.kind = HostMessage::Kind(kind);
  message.task = taker.number<std::int32_t>();
  message.number = taker.number<std::int32_t>();
  for (auto left = taker.number<std::uint32_t>(); left > 0; --left)
    message.texts.emplace_back(taker.bytes(taker.number<std::uint32_t>()));
  if (!taker.at_end()) fail_message();
  joined_.erase(0, sizeof size + size);
  return message;
}

std::int64_t number_in(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc() || stop != end) fail_message();
  return number;
}

HostMessage message_of(const HostJob& job) {
  HostMessage message{HostMessage::Kind::kPrepare};
  message.texts = {job.folder,
                   job.program,
                   job.bind,
                   std::to_string(job.first_port),
                   std::to_string(job.files),
                   std::to_string(job.silence_ms),
                   std::to_string(job.end_within_ms),
                   std::to_string(job.environment.size())};
  for (const auto* texts : {&job.environment, &job.tasks})
    message.texts.insert(message.texts.end(), texts->begin(), texts->end());
  return message;
}

HostJob job_of(const HostMessage& message) {
  constexpr std::size_t kFirst = 8;
  const std::vector<std::string>& texts = message.texts;
  if (texts.size() < kFirst) fail_message();
  const std::int64_t variables = number_in(texts[kFirst - 1]);
  if (variables < 0 || std::size_t(variables) > texts.size() - kFirst) fail_message();
  const auto environment = texts.begin() + std::ptrdiff_t(kFirst);
  const auto tasks = environment + std::ptrdiff_t(variables);
  return {.folder = texts[0],
          .program = texts[1],
          .bind = texts[2],
          .first_port = int(number_in(texts[3])),
          .files = int(number_in(texts[4])),
          .silence_ms = number_in(texts[5]),
          .end_within_ms = number_in(texts[6]),
          .environment = {environment, tasks},
          .tasks = {tasks, texts.end()}};
}

}  // namespace paceline
