// A small HTTP server: one thread, and few connections, each with a deadline, so that no client can
// delay anything else.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

#include "base/deadline.h"
#include "dashboard/http_request.h"
#include "dashboard/https_context.h"
#include "net/poll/event_fd.h"
#include "net/poll/file_descriptor.h"
#include "net/stream/byte_stream.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {

struct HttpLimits {
  /// If one connection more than this arrives, the oldest one is closed.
  std::size_t most_connections = 32;
  /// A client must send its request and receive the answer within this time, or is cut off.
  Duration within = std::chrono::seconds(5);
};

/// Answers GET and HEAD, one request on each connection, and reads no body.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  /// Listens. Calls `handle` on the server's thread. With `https` the server encrypts, and tells
  /// callers that do not encrypt to do so. Throws as listen_at does.
  HttpServer(const Address& at, Handler handle, const HttpLimits& limits = {},
             std::unique_ptr<const HttpsContext> https = nullptr);
  /// Ends all connections and joins the thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "127.0.0.1:8080", with the port that the system chose if none was given.
  const std::string& address() const { return listening_.address; }

 private:
  struct Client {
    FileDescriptor fd;
    Deadline deadline;
    std::unique_ptr<ByteStream> stream = {};  // null until the first byte is there
    ByteStream::Need need = ByteStream::Need::kReadable;
    bool open = false;   // the stream can be used
    bool plain = false;  // the client does not encrypt, though it should
    std::string request = {}, answer = {};
    std::size_t sent = 0;
    // All was sent; further bytes are dropped until the client closes the connection.
    bool finished = false;
  };
  void serve();
  std::vector<pollfd> descriptors() const;
  Deadline next_deadline() const;
  void accept();
  static bool holds_unread(const Client& client);
  // tend(), send() and read() return false if the connection has ended. A faulty stream throws
  // Error.
  bool tend(Client& client);
  bool open(Client& client) const;
  static bool send(Client& client);
  bool read(Client& client);
  HttpResponse answer_to(const Client& client) const;
  HttpResponse handled(const HttpRequest& request) const;

  const Handler handle_;
  const HttpLimits limits_;
  const std::unique_ptr<const HttpsContext> https_;
  const ListeningSocket listening_;
  const bool only_here_;  // no other machine can reach it
  const EventFd stop_;
  std::list<Client> clients_;
  std::thread thread_;
};

}  // namespace paceline
