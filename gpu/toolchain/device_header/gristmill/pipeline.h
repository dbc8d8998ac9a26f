// Copies to shared memory in the background, as in cuda_pipeline.h. After memory.h, or what a
// toolkit has in its place.
#pragma once

// Copies of 4, 8 or 16 bytes from global to shared memory that the thread does not wait for.
// The last `zero_fill` bytes are not read but set to zero.
GM_DEVICE void __pipeline_memcpy_async(
  void* shared, const void* global, size_t bytes, size_t zero_fill = 0) {
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  unsigned used = static_cast<unsigned>(bytes - zero_fill);
  if (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(used)
                 : "memory");
  else if (bytes == 8)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(global), "r"(used)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(used)
                 : "memory");
}
GM_DEVICE void __pipeline_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `prior` of the newest groups are still under way; a literal up to 7.
GM_DEVICE void __pipeline_wait_prior(size_t prior) {
  switch (prior) {
  case 0:
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    break;
  case 1:
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    break;
  case 2:
    asm volatile("cp.async.wait_group 2;" ::: "memory");
    break;
  case 3:
    asm volatile("cp.async.wait_group 3;" ::: "memory");
    break;
  case 4:
    asm volatile("cp.async.wait_group 4;" ::: "memory");
    break;
  case 5:
    asm volatile("cp.async.wait_group 5;" ::: "memory");
    break;
  case 6:
    asm volatile("cp.async.wait_group 6;" ::: "memory");
    break;
  default:
    asm volatile("cp.async.wait_group 7;" ::: "memory");
    break;
  }
}
