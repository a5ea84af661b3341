// The little of HTTP/1.1 that a page of one machine needs: requests without a body, answered once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

/// The head of a request. The server reads nothing else of it.
struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/state.json", without what follows a '?'
  std::string host;    // the field Host, "127.0.0.1:8080"; empty: there is none
  /// The client's token: that of "Authorization: Bearer …", or else of "?token=…".
  std::string token = {};

  bool operator==(const HttpRequest&) const = default;
};

/// No request has a longer head.
constexpr std::size_t kMostHeadBytes = 8192;

/// Returns how many bytes of the text are the head with the empty line that ends it; 0: it has not
/// ended yet.
std::size_t head_bytes(std::string_view text);
/// Reads a head. Empty when it is none.
std::optional<HttpRequest> parse_http_request(std::string_view head);

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};
/// Returns the bytes that travel; of the body none when `head_only`.
std::string text_of(const HttpResponse& response, bool head_only);

}  // namespace paceline
