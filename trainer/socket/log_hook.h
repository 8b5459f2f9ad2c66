#pragma once

#include <functional>
#include <string>

namespace everstep::trainer {

// Called with one line in logfmt, possibly from a service thread.
using LogHook = std::function<void(const std::string& line)>;

// Hands on at most a few lines at once and one every few seconds afterwards, however often it is called, and says how
// many it kept back. For what strangers can make a worker say.
LogHook limit_rate(LogHook log);

}  // namespace everstep::trainer
