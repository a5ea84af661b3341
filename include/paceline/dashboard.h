// The live page of a run, and the lines that say what holds it back.
#pragma once

#include <string>

#include "paceline/run_options.h"

namespace paceline {

/// Where the chief serves a live page of the run while it trains (docs/dashboard.md), and to whom.
struct DashboardOptions {
  std::string at = {};  // "host:port"; port 0: a free port. Empty: no page is served
  /// The file of the token that a reader of the page must give. Empty: anybody may read the page.
  std::string token = {};
  /// The PEM file of the page's certificate, followed by the certificates between this one and the
  /// authority's. Empty: the page is not encrypted.
  std::string certificate = {};
  std::string key = {};  // the PEM file of the certificate's private key
};

/// Returns the maker of an observer that serves the page. The observer also says what holds the job
/// back, while the run goes on and at its end (docs/explain.md). run_program adds this observer to
/// every run that trains.
MakeObserver watch_job(const DashboardOptions& dashboard = {});

}  // namespace paceline
