// The small part of HTTP/1.1 that a page of one machine needs: a connection carries one request
// without a body, and one answer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

/// The head of a request. The server uses nothing else of the request.
struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/state.json", without what follows a '?'
  std::string host;    // the field Host, "127.0.0.1:8080"; empty if there is none
  /// The client's token, from "Authorization: Bearer …", or else from "?token=…".
  std::string token = {};

  bool operator==(const HttpRequest&) const = default;
};

/// No request has a longer head.
constexpr std::size_t kMostHeadBytes = 8192;

/// Returns how many bytes of the text the head takes, with the empty line that ends it; 0 if it has
/// not ended yet.
std::size_t head_bytes(std::string_view text);
/// Reads a head; returns nothing if the text is none.
std::optional<HttpRequest> parse_http_request(std::string_view head);

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};
/// Returns the bytes that are sent; the body is left out if `head_only`.
std::string text_of(const HttpResponse& response, bool head_only);

}  // namespace paceline
