#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "trainer/data/token_file.h"

namespace everstep::trainer {

// Bytes of a data file can be read in many ways, and trained on in every one of them. These look at the contents: of a
// large file at up to 64 stretches of 1 MiB, evenly spread. What cannot be right is kInvalidArgument, and the message
// begins with `name`, the file's. A few bytes prove nothing and pass.

// Bytes that are to be tokens because nothing else is known of them: refuses what is no text.
Status check_is_text(const TokenSpan& bytes, const std::string& name);

// Of a file that is called a token file: refuses text.
Status check_is_no_text(const TokenSpan& tokens, const std::string& name);

// 16-bit tokens: refuses wider ones, of which every second half is zero, or nearly so.
Status check_is_not_wider(const TokenSpan& tokens, const std::string& name);

// Which ids there are.
struct TokenIds {
  std::int64_t looked_at = 0;  // tokens; all of them unless the file is large
  std::int64_t used = 0;       // different ids
  std::int64_t largest = 0;
  std::int64_t place_of_largest = 0;  // where it stands first, of those that were looked at

  bool operator==(const TokenIds&) const = default;
};
TokenIds ids_of(const TokenSpan& tokens);

}  // namespace everstep::trainer
