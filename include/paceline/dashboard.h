// The live page of a run, and the lines that say what holds it back.
#pragma once

#include <string>

#include "paceline/run_options.h"

namespace paceline {

/// Where the chief serves a live page of the run while it trains (docs/dashboard.md), and to whom.
struct DashboardOptions {
  std::string at = {};  // "host:port"; port 0: one that is free. Empty: no page is served
  /// The file of the token that a reader of the page must give; empty: anybody may read it.
  std::string token = {};
  /// The PEM file of the certificate that the page shows, with those between it and the
  /// authority's; empty: the page is not encrypted.
  std::string certificate = {};
  std::string key = {};  // the PEM file of the certificate's private key
};

/// Makes the observer that serves the page, says while the run goes on what holds the job back, and
/// at its end what did (docs/explain.md). run_program adds it to every run.
MakeObserver watch_job(const DashboardOptions& dashboard = {});

}  // namespace paceline
