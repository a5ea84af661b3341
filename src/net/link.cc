#include "net/link.h"

#include "net/auto_link/auto_link.h"
#include "net/inproc/inproc_link.h"
#include "net/queued_frame.h"
#include "net/shm/shm_link.h"
#include "net/tcp/tcp_link.h"
#include "net/tls/link_streams.h"

namespace paceline {

void Receiver::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory>) {
  throw Error(ErrorCode::kDataLoss, "memory " + std::to_string(id) + " is shared, unasked");
}

void Connection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  QueuedFrame frame{header, payload};
  frame.header.payload_bytes = std::uint32_t(payload.size());
  frame.keep_payload();
  send(frame.header, frame.payload, frame.sent, frame.context);
}

void Connection::share(std::uint32_t, std::shared_ptr<const SharedMemory>) {
  throw Error(ErrorCode::kFailedPrecondition, "no memory can be shared with " + peer());
}

bool Link::wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) {
  while (!come()) {
    if (deadline.passed()) return false;
    if (!wake.wait(deadline)) return come();
    wake.clear();
  }
  return true;
}

std::unique_ptr<Link> make_link(const std::string& kind, const LinkOptions& options) {
  if (kind == "inproc") return make_inproc_link(options, std::make_shared<InprocHub>());
  if (kind == "tcp") return make_tcp_link(options);
  if (kind == "shm" && encrypts_within_host(options.security))
    throw Error(ErrorCode::kInvalidArgument,
                "--link=shm and --tls=on exclude each other: memory that tasks share is not "
                "encrypted");
  if (kind == "shm") return std::make_unique<ShmLink>(options, std::make_shared<TcpLink>(options));
  if (kind == "auto") return make_auto_link(options);
  throw Error(ErrorCode::kInvalidArgument,
              "--link=" + kind + ": there is no such link; there are auto, inproc, shm and tcp");
}

}  // namespace paceline
