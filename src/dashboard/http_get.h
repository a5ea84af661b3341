// Asks an HTTP server for a page.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "dashboard/http_request.h"

namespace paceline {

struct HttpCaller {
  std::string token = {};      // sent with the request; empty: none
  std::string authority = {};  // as HttpsContext::of_caller takes it; from --dashboard-ca
};

/// True for the URL of a page, "http://…" or "https://…".
bool is_http_url(std::string_view text);

/// Gets a page. `url` is "http://HOST:PORT/PATH" or "https://…"; the path may be missing. Throws
/// kInvalidArgument for another text; kUnavailable if nobody listens there, or if the server cannot
/// prove to be that host; kDataLoss if the answer is no HTTP or has more than 16 MiB; and as
/// HttpsContext does.
HttpResponse http_get(const std::string& url, Deadline deadline, const HttpCaller& caller = {});

}  // namespace paceline
