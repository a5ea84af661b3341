#include "net/link.h"

#include "net/inproc/inproc_link.h"
#include "net/tcp/tcp_link.h"

namespace paceline {

std::unique_ptr<Link> make_link(const std::string& kind, const LinkOptions& options) {
  if (kind == "inproc") return make_inproc_link(options);
  if (kind == "tcp") return make_tcp_link(options);
  throw Error(ErrorCode::kInvalidArgument,
              "--link=" + kind + ": there is no such link; there are inproc and tcp");
}

}  // namespace paceline
