#pragma once

#include <string>
#include <vector>

#include "launcher/doctor/check.h"

namespace everstep::launcher::doctor {

struct Report {
  std::string device;                            // "cuda", "cuda:1", "cpu"
  storage::Json host = storage::Json::object();  // versions, driver, environment: see host.h
  std::vector<Check> checks;
  double seconds = 0;
  std::string files;  // the directory with what was made, if it is still there; else empty

  bool has_failed() const;
};

// "passed: 11 checks on cuda in 48 s, 1 not checked", "FAILED: operators, link tls (2 of 12 checks on cpu)".
std::string verdict(const Report& report);

// For people: a row for each check, why what has failed did, and the verdict. `columns` as of Streams.
std::string report_text(const Report& report, std::size_t columns);

// All that is known.
storage::Json report_json(const Report& report);

}  // namespace everstep::launcher::doctor
