// The stream of a socket alone, whose bytes travel unchanged.
#pragma once

#include "net/stream/byte_stream.h"

namespace paceline {

class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(int fd) : fd_(fd) {}

  std::ptrdiff_t read(std::span<const iovec> parts) override;
  std::ptrdiff_t write(std::span<const iovec> parts) override;
  void shut_writing() override;

 private:
  const int fd_;
};

}  // namespace paceline
