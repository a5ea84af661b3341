#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "net/poll/file_descriptor.h"
#include "net/tls/openssl_context.h"
#include "net/tls/tls_context.h"
#include "paceline/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

const TlsContext& context() {
  static const TlsContext made([] {
    auto security = std::make_shared<LinkSecurity>();
    security->tls = Tls::kAlways;
    security->key = SecretKey::make();
    return security;
  }());
  return made;
}

/// A stranger sends these bytes to a listener, and closes. It must not be let in, since it has no
/// key.
void say_to_listener(Bytes bytes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    __builtin_trap();
  const FileDescriptor listener(ends[0]);
  FileDescriptor stranger(ends[1]);
  if (send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != ssize_t(bytes.size()))
    __builtin_trap();
  shutdown(stranger.get(), SHUT_WR);
  const auto stream = context().answer(listener.get());
  try {
    while (stream->open() != ByteStream::Need::kNothing) {
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    return;
  }
  __builtin_trap();  // it got in
}

/// Reads a file that claims to be a certificate, its key, and an authority.
void read_as_certificate(Bytes bytes) {
  const MemoryFile file(bytes);
  if (chmod(file.path().c_str(), 0600) != 0) __builtin_trap();
  const OpensslContext context = make_openssl_context();
  for (const bool as_authority : {false, true}) {
    try {
      if (as_authority) {
        trust_authority(context.get(), {"--tls-ca", file.path()});
      } else {
        show_certificate(context.get(), {"--tls-cert", file.path()}, {"--tls-key", file.path()});
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      if (std::string_view(error.what()).find("--tls-") == std::string_view::npos) __builtin_trap();
    }
  }
}

void read_as_key(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    const std::string again = SecretKey::parse(text, "the key file").text();
    if (again != text && again != std::string(text) + "\n") __builtin_trap();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
  }
}

}  // namespace

void fuzz_tls(Bytes bytes) {
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), 32768));
  say_to_listener(bytes);
  read_as_key(bytes);
  read_as_certificate(bytes);
}

}  // namespace paceline::testing
