// Asks an HTTP server for a page.
#pragma once

#include <string>

#include "base/deadline.h"
#include "dashboard/http_request.h"

namespace paceline {

/// `url`: "http://HOST:PORT/PATH"; the path may be missing. Throws kInvalidArgument for another
/// text, kUnavailable when nobody listens there, and kDataLoss when the answer is no HTTP, or has
/// more than 16 MiB.
/// A `token` that is not empty is given.
HttpResponse http_get(const std::string& url, Deadline deadline, const std::string& token = "");

}  // namespace paceline
