#pragma once

#include "base/result.h"
#include "storage/manifest.h"

namespace everstep::storage {

// The part of check(Manifest) about its files; the rest must have passed.
Status check_files(const Manifest& manifest);

}  // namespace everstep::storage
