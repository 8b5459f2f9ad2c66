#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

// What the system knows of processes, whoever started them.
namespace everstep::launcher {

// Whether it is there and has not ended: one that only waits to be counted out has.
bool lives(pid_t process);

// Children that have not ended, by their ids.
std::vector<pid_t> living_children(pid_t parent);

// Without the program's name; empty if there is no such process.
std::vector<std::string> arguments_of(pid_t process);

// All processes with an argument that has this text in it.
std::vector<pid_t> processes_naming(const std::string& text);

// What a process uses now.
struct ProcessUse {
  std::int64_t resident_bytes = 0;
  int descriptors = 0;
  int threads = 0;
};

// Nothing: it does not live.
std::optional<ProcessUse> use_of(pid_t process);

// From now on processes whose parents end become our children: none gets lost.
void adopt_orphans();

// Children when none of our own is left: they outlived whoever started them. Those that have ended are waited for.
std::vector<pid_t> living_orphans();

// Kills them, and theirs, until none is left.
void end_orphans();

}  // namespace everstep::launcher
