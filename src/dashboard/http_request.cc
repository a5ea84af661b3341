#include "dashboard/http_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace paceline {
namespace {

// The page contains its own style and script, sends requests only to its own server, and may not
// appear in a frame of another site.
constexpr std::string_view kFields =
    "Connection: close\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n";

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Internal Server Error";
  }
}

std::string_view line_at(std::string_view text, std::size_t begin) {
  const std::size_t end = std::min(text.find('\n', begin), text.size());
  std::string_view line = text.substr(begin, end - begin);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_named(std::string_view field, std::string_view name) {
  return field.size() > name.size() && field[name.size()] == ':' &&
         std::ranges::equal(field.substr(0, name.size()), name, [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// Returns the token of a query such as "x=1&token=…"; empty if it has none.
std::string_view token_of_query(std::string_view query) {
  constexpr std::string_view kName = "token=";
  for (std::size_t at = 0; at < query.size(); ++at) {
    const std::size_t end = std::min(query.find('&', at), query.size());
    const std::string_view field = query.substr(at, end - at);
    if (field.starts_with(kName)) return field.substr(kName.size());
    at = end;
  }
  return {};
}

}  // namespace

std::size_t head_bytes(std::string_view text) {
  for (const std::string_view end : {"\r\n\r\n", "\n\n"}) {
    const std::size_t at = text.find(end);
    if (at != std::string_view::npos) return at + end.size();
  }
  return 0;
}

std::optional<HttpRequest> parse_http_request(std::string_view head) {
  const std::string_view first = line_at(head, 0);
  const std::size_t method_end = first.find(' ');
  const std::size_t target_end = first.rfind(' ');
  if (method_end == std::string_view::npos || target_end == method_end ||
      !first.substr(target_end + 1).starts_with("HTTP/1.")) {
    return std::nullopt;
  }
  const std::string_view target = first.substr(method_end + 1, target_end - method_end - 1);
  if (!target.starts_with('/') || target.find(' ') != std::string_view::npos) return std::nullopt;
  HttpRequest request;
  request.method = first.substr(0, method_end);
  const std::size_t path_end = std::min(target.find('?'), target.size());
  request.path = target.substr(0, path_end);
  if (path_end < target.size()) request.token = token_of_query(target.substr(path_end + 1));
  for (std::size_t at = head.find('\n'); at != std::string_view::npos; at = head.find('\n', at)) {
    const std::string_view field = line_at(head, ++at);
    constexpr std::string_view kHost = "host", kProof = "authorization", kBearer = "Bearer ";
    if (is_named(field, kHost)) request.host = without_blanks(field.substr(kHost.size() + 1));
    if (!is_named(field, kProof)) continue;
    const std::string_view proof = without_blanks(field.substr(kProof.size() + 1));
    if (proof.starts_with(kBearer)) request.token = without_blanks(proof.substr(kBearer.size()));
  }
  return request;
}

std::string text_of(const HttpResponse& response, bool head_only) {
  const std::string_view allowed = response.status == 405   ? "Allow: GET, HEAD\r\n"
                                   : response.status == 401 ? "WWW-Authenticate: Bearer\r\n"
                                                            : "";
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n{}",
                     response.status, reason_of(response.status), response.type,
                     response.body.size(), allowed, kFields, head_only ? "" : response.body);
}

}  // namespace paceline
