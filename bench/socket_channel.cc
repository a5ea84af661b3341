#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/buffer.h"
#include "bench/channel.h"
#include "bench/peer_process.h"
#include "bench/shared_word.h"
#include "bench/socket_end.h"
#include "net/poll/file_descriptor.h"
#include "paceline/error.h"

namespace paceline::bench {
namespace {

int checked(int result, const char* call) {
  if (result >= 0) return result;
  throw Error(ErrorCode::kUnavailable, std::string("[bench] ") + call + " failed on loopback");
}

/// Two connected sockets over loopback.
struct SocketPair {
  SocketPair() {
    const FileDescriptor listening(checked(::socket(AF_INET, SOCK_STREAM, 0), "socket"));
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof here;
    auto* address = reinterpret_cast<sockaddr*>(&here);
    checked(::bind(listening.get(), address, bytes), "bind");
    checked(::listen(listening.get(), 1), "listen");
    checked(::getsockname(listening.get(), address, &bytes), "getsockname");
    near = FileDescriptor(checked(::socket(AF_INET, SOCK_STREAM, 0), "socket"));
    checked(::connect(near.get(), address, bytes), "connect");
    far = FileDescriptor(checked(::accept(listening.get(), nullptr, nullptr), "accept"));
    const int on = 1;
    for (const int fd : {near.get(), far.get()}) {
      checked(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "setsockopt");
    }
  }
  FileDescriptor near, far;
};

class SocketChannel : public Channel {
 public:
  explicit SocketChannel(const ChannelOptions& options)
      : options_(options),
        payload_(options.request_bytes > 0 ? options.request_bytes : options.message.piece_bytes),
        ends_(make_ends()),
        far_end_([this] { serve(); }, options.near) {}

  using Channel::exchange;
  void exchange(std::uint32_t times) override {
    const auto pieces = times * std::uint32_t(options_.message.pieces);
    const std::uint32_t wanted = received_->get() + pieces;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      if (!ends_.near->send(payload_.span())) fail();
      // Reads echoed pieces between sends; otherwise both ends could wait for room in the socket
      // for ever.
      if (options_.echo && !ends_.near->receive(answer())) fail();
    }
    if (options_.echo) return;
    received_->wait_for(wanted);
  }
  void pause() override { far_end_.pause(); }
  void resume() override { far_end_.resume(); }

 private:
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::kUnavailable, "[bench] the bare socket was closed");
  }

  SocketEnds make_ends() const {
    const int near = pair_.near.get(), far = pair_.far.get();
    if (options_.encrypted) return make_tls_ends(near, far);
    if (options_.calls_of_link)
      return {make_end_with_calls_of_link(near), make_end_with_calls_of_link(far)};
    return {make_plain_end(near), make_plain_end(far)};
  }

  void serve() {
    const Buffer room(payload_.size());
    while (ends_.far->receive(room.span())) {
      if (!options_.echo) {
        received_->set(received_->get() + 1);
      } else if (!ends_.far->send(answer_.span())) {
        return;
      }
    }
  }

  std::span<std::byte> answer() const {
    return options_.answer == nullptr ? answer_.span()
                                      : std::span(options_.answer, options_.message.piece_bytes);
  }

  const ChannelOptions options_;
  const Buffer payload_;
  const Buffer answer_{options_.message.piece_bytes};
  const SocketPair pair_;
  const SocketEnds ends_;
  const SharedObject<SharedWord> received_;
  PeerProcess far_end_;
};

}  // namespace

std::unique_ptr<Channel> make_socket_channel(const ChannelOptions& options) {
  return std::make_unique<SocketChannel>(options);
}

}  // namespace paceline::bench
