#include "trainer/checkpoints/caught.h"

#include <new>
#include <string>

namespace everstep::trainer {

Error error_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    // Short enough to need no memory.
    return {ErrorCode::kUnavailable, "out of memory", ""};
  } catch (const std::exception& known) {
    return {ErrorCode::kUnavailable, known.what(), ""};
  } catch (...) {
    return {ErrorCode::kInternal, "unknown failure", ""};
  }
}

}  // namespace everstep::trainer
