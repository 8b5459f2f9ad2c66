#pragma once

#include <cstdint>
#include <deque>

namespace everstep::null_cuda {

// A stream of work that is never done, only over: it knows how much it was given, how much of that is over, and what
// of other streams must be over before. Not safe for threads.
class StreamWork {
 public:
  // A place in a stream: all that it was given so far.
  struct Place {
    StreamWork* stream = nullptr;
    std::int64_t at = 0;

    bool is_over() const { return stream == nullptr || stream->over_ >= at; }
    void end() const {
      if (stream != nullptr) stream->end_up_to(at);
    }
  };

  void add() { ++given_; }
  Place here() { return {this, given_}; }

  // What is given from now on begins when that is over.
  void wait_for(const Place& place) {
    add();
    if (!place.is_over()) befores_.push_back({given_, place});
  }

 private:
  struct Before {
    std::int64_t at;
    Place place;
  };

  void end_up_to(std::int64_t at) {
    if (over_ >= at) return;
    over_ = at;
    while (!befores_.empty() && befores_.front().at <= at) {
      const Before before = befores_.front();
      befores_.pop_front();
      before.place.end();
    }
  }

  std::int64_t given_ = 0;
  std::int64_t over_ = 0;
  std::deque<Before> befores_;
};

}  // namespace everstep::null_cuda
