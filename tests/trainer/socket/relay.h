#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/socket/event_flag.h"
#include "trainer/socket/file_descriptor.h"

namespace everstep::trainer {

// Somebody on the way between callers and a worker. It hands on what both sides say, or something else.
class Relay {
 public:
  enum Direction { kToCalled, kToCaller };

  struct Passing {
    int call = 0;  // which one, in the order in which they came
    Direction direction = kToCalled;
    std::size_t before = 0;  // so many bytes went this way before
    std::string& bytes;      // may be changed; what is left goes on
  };
  using Meddler = std::function<void(const Passing& passing)>;

  // Takes calls at `entrance`, which listens already. The meddler runs in the relay's thread.
  Relay(FileDescriptor entrance, std::function<FileDescriptor()> dial, Meddler meddler = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

 private:
  struct Way {
    std::size_t passed = 0;
    std::string waiting{};
    bool has_ended = false;  // nothing more comes from there
  };
  struct Line {
    int call = 0;
    std::array<FileDescriptor, 2> ends;  // the caller's, then the called's
    std::array<Way, 2> ways{};           // by Direction: what goes away from ends[direction]
  };

  void run();
  bool serve(Line& line, short caller_events, short called_events);
  bool take(Line& line, Direction direction);
  static bool hand_on(Line& line, Direction direction);

  FileDescriptor entrance_;
  const std::function<FileDescriptor()> dial_;
  const Meddler meddler_;
  std::vector<Line> lines_;
  int calls_ = 0;
  EventFlag stop_;
  std::thread thread_;
};

}  // namespace everstep::trainer
