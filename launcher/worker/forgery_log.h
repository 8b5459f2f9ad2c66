#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/tick.h"
#include "elastic/view.h"

namespace everstep::launcher {

// Says which records of a job are forged: each at once, and again every minute for as long as it stays, but no more
// than a few lines at a time, since whoever forges decides how many there are.
class ForgeryLog {
 public:
  // Lines for the log that are due.
  std::vector<std::string> look(const elastic::View& view, Tick now);

 private:
  struct Told {
    elastic::Revision modified = 0;
    Tick at = 0;
  };

  std::map<std::string, Told> told_;  // by key, of those that are there
  Tick minute_ = 0;                   // when the one began in which lines are counted
  int lines_ = 0;
};

}  // namespace everstep::launcher
