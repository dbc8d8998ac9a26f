// cuda::barrier in shared memory, cuda::pipeline, and the copies that both wait for.
#pragma once
#include "groups_collective.h"
#include "scopes.h"

// Words of shared memory that threads of a block arrive at (PTX mbarrier).
GM_DEVICE unsigned gm_shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
GM_DEVICE void gm_barrier_init(unsigned long long* bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(gm_shared_address(bar)), "r"(count)
               : "memory");
}
GM_DEVICE unsigned long long gm_barrier_arrive(unsigned long long* bar, unsigned count) {
  unsigned long long token;
  if (count == 1)
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];"
                 : "=l"(token)
                 : "r"(gm_shared_address(bar))
                 : "memory");
  else
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1], %2;"
                 : "=l"(token)
                 : "r"(gm_shared_address(bar)), "r"(count)
                 : "memory");
  return token;
}
GM_DEVICE bool gm_barrier_done(unsigned long long* bar, unsigned long long token) {
  unsigned done;
  asm volatile("{\n .reg .pred gm_p;\n mbarrier.test_wait.shared.b64 gm_p, [%1], %2;\n"
               " selp.u32 %0, 1, 0, gm_p;\n}"
               : "=r"(done)
               : "r"(gm_shared_address(bar)), "l"(token)
               : "memory");
  return done != 0;
}
// Whether the phase of that parity is over.
GM_DEVICE bool gm_barrier_passed(unsigned long long* bar, unsigned parity) {
  unsigned done;
  asm volatile("{\n .reg .pred gm_p;\n mbarrier.test_wait.parity.shared.b64 gm_p, [%1], %2;\n"
               " selp.u32 %0, 1, 0, gm_p;\n}"
               : "=r"(done)
               : "r"(gm_shared_address(bar)), "r"(parity)
               : "memory");
  return done != 0;
}

namespace cuda {

template <size_t alignment>
struct aligned_size_t {
  static constexpr size_t align = alignment;
  size_t value;
  __device__ constexpr explicit aligned_size_t(size_t v) : value(v) {}
  __device__ constexpr operator size_t() const { return value; }
};

struct gm_no_completion {};
template <thread_scope scope, class Completion = gm_no_completion>
class barrier {
  static_assert(scope == thread_scope_block && std::is_same_v<Completion, gm_no_completion>,
    "barriers of a block, without a function at the end of a phase, are available");

public:
  typedef unsigned long long arrival_token;
  barrier() = default;
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  __device__ barrier(ptrdiff_t expected) {
    gm_barrier_init(&word_, static_cast<unsigned>(expected));
  }
  __device__ friend void init(barrier* bar, ptrdiff_t expected) {
    gm_barrier_init(&bar->word_, static_cast<unsigned>(expected));
  }
  __device__ static constexpr ptrdiff_t max() { return (1 << 20) - 1; }
  __device__ arrival_token arrive(ptrdiff_t count = 1) {
    return gm_barrier_arrive(&word_, static_cast<unsigned>(count));
  }
  __device__ void wait(arrival_token&& token) {
    while (!gm_barrier_done(&word_, token)) {
    }
  }
  __device__ void wait(const arrival_token& token) {
    while (!gm_barrier_done(&word_, token)) {
    }
  }
  __device__ void wait_parity(bool parity) {
    while (!gm_barrier_passed(&word_, parity)) {
    }
  }
  __device__ bool gm_try(arrival_token token) { return gm_barrier_done(&word_, token); }
  __device__ void arrive_and_wait() { wait(arrive()); }
  __device__ void arrive_and_drop() {
    asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" ::"r"(gm_shared_address(&word_))
                 : "memory");
  }
  __device__ unsigned long long* gm_word() { return &word_; }

private:
  alignas(8) unsigned long long word_;
};

namespace device {
GM_DEVICE unsigned long long* barrier_native_handle(barrier<thread_scope_block>& bar) {
  return bar.gm_word();
}
#if __CUDA_ARCH__ >= 900
GM_DEVICE void barrier_expect_tx(barrier<thread_scope_block>& bar, ptrdiff_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(
                 gm_shared_address(bar.gm_word())),
               "r"(static_cast<unsigned>(bytes))
               : "memory");
}
GM_DEVICE unsigned long long barrier_arrive_tx(
  barrier<thread_scope_block>& bar, ptrdiff_t count, ptrdiff_t bytes) {
  if (count != 1) {
    barrier_expect_tx(bar, bytes);
    return bar.arrive(count);
  }
  unsigned long long token;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
               : "=l"(token)
               : "r"(gm_shared_address(bar.gm_word())), "r"(static_cast<unsigned>(bytes))
               : "memory");
  return token;
}
// A bulk copy; both ends and the size are multiples of 16 bytes.
template <size_t alignment>
GM_DEVICE void memcpy_async_tx(
  void* to, const void* from, aligned_size_t<alignment> bytes, barrier<thread_scope_block>& bar) {
  static_assert(alignment >= 16, "bulk copies are aligned to 16 bytes");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(gm_shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(static_cast<unsigned>(bytes.value)),
               "r"(gm_shared_address(bar.gm_word()))
               : "memory");
}
#endif
} // namespace device

// Copies that the barrier counts: its phase does not end before they have.
template <class Group>
GM_DEVICE void memcpy_async(
  const Group& group, void* to, const void* from, size_t bytes, barrier<thread_scope_block>& bar) {
  cooperative_groups::gm_copy(group, to, from, bytes);
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(gm_shared_address(bar.gm_word()))
               : "memory");
}
GM_DEVICE void memcpy_async(
  void* to, const void* from, size_t bytes, barrier<thread_scope_block>& bar) {
  memcpy_async(cooperative_groups::this_thread(), to, from, bytes, bar);
}

enum class pipeline_role { producer, consumer };

// What the threads of a block share: for each stage who has filled it and who is done with it.
template <thread_scope scope, unsigned char stages>
struct pipeline_shared_state {
  static_assert(scope == thread_scope_block, "the state of a pipeline is shared by a block");
  pipeline_shared_state() = default;
  alignas(8) unsigned long long gm_full[stages];
  alignas(8) unsigned long long gm_empty[stages];
  unsigned gm_producers;
};

template <thread_scope scope>
class pipeline;
// Of one thread: stages are the groups of copies that it has committed.
template <>
class pipeline<thread_scope_thread> {
public:
  __device__ void producer_acquire() {}
  __device__ void producer_commit() {
    __pipeline_commit();
    ++committed_;
  }
  __device__ void consumer_wait() {
    ++waited_;
    gm_wait_prior(committed_ - waited_);
  }
  __device__ void consumer_release() {}
  __device__ bool quit() { return true; }
  // At most `newest` of the newest groups may be under way still; 7 or more are as good as 7.
  __device__ static void gm_wait_prior(unsigned newest) { __pipeline_wait_prior(newest); }

private:
  unsigned committed_ = 0, waited_ = 0;
};
template <>
class pipeline<thread_scope_block> {
public:
  __device__ pipeline(unsigned long long* full, unsigned long long* empty, unsigned stages)
    : full_(full), empty_(empty), stages_(stages) {}
  __device__ void producer_acquire() {
    while (!gm_barrier_passed(empty_ + head_, head_parity_ ^ 1u)) {
    }
  }
  __device__ void producer_commit() {
    // The arrival happens when the copies of this thread have.
    asm volatile(
      "cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(gm_shared_address(full_ + head_))
      : "memory");
    advance(head_, head_parity_);
  }
  __device__ void consumer_wait() {
    while (!gm_barrier_passed(full_ + tail_, tail_parity_)) {
    }
  }
  __device__ void consumer_release() {
    gm_barrier_arrive(empty_ + tail_, 1);
    advance(tail_, tail_parity_);
  }
  __device__ bool quit() { return true; }

private:
  __device__ void advance(unsigned& at, unsigned& parity) {
    if (++at == stages_) {
      at = 0;
      parity ^= 1u;
    }
  }
  unsigned long long* full_;
  unsigned long long* empty_;
  unsigned stages_, head_ = 0, head_parity_ = 0, tail_ = 0, tail_parity_ = 0;
};

GM_DEVICE pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <class Group, thread_scope scope, unsigned char stages>
GM_DEVICE pipeline<scope> gm_make_pipeline(const Group& group,
  pipeline_shared_state<scope, stages>* state, unsigned producers, unsigned consumers) {
  if (group.thread_rank() == 0)
    for (int i = 0; i < stages; ++i) {
      gm_barrier_init(&state->gm_full[i], producers);
      gm_barrier_init(&state->gm_empty[i], consumers);
    }
  group.sync();
  return {state->gm_full, state->gm_empty, stages};
}
// Everybody fills and everybody uses.
template <class Group, thread_scope scope, unsigned char stages>
GM_DEVICE pipeline<scope> make_pipeline(
  const Group& group, pipeline_shared_state<scope, stages>* state) {
  unsigned all = static_cast<unsigned>(group.size());
  return gm_make_pipeline(group, state, all, all);
}
// The first `producers` threads fill, the others use.
template <class Group, thread_scope scope, unsigned char stages>
GM_DEVICE pipeline<scope> make_pipeline(
  const Group& group, pipeline_shared_state<scope, stages>* state, size_t producers) {
  unsigned filling = static_cast<unsigned>(producers);
  return gm_make_pipeline(group, state, filling, static_cast<unsigned>(group.size()) - filling);
}
template <class Group, thread_scope scope, unsigned char stages>
GM_DEVICE pipeline<scope> make_pipeline(
  const Group& group, pipeline_shared_state<scope, stages>* state, pipeline_role role) {
  if (group.thread_rank() == 0)
    state->gm_producers = 0;
  group.sync();
  if (role == pipeline_role::producer)
    atomicAdd(&state->gm_producers, 1u);
  group.sync();
  return make_pipeline(group, state, static_cast<size_t>(state->gm_producers));
}

template <class Group, thread_scope scope>
GM_DEVICE void memcpy_async(
  const Group& group, void* to, const void* from, size_t bytes, pipeline<scope>&) {
  cooperative_groups::gm_copy(group, to, from, bytes);
}
template <thread_scope scope>
GM_DEVICE void memcpy_async(void* to, const void* from, size_t bytes, pipeline<scope>&) {
  cooperative_groups::gm_copy(cooperative_groups::this_thread(), to, from, bytes);
}
template <unsigned char newest>
GM_DEVICE void pipeline_consumer_wait_prior(pipeline<thread_scope_thread>& pipe) {
  pipe.gm_wait_prior(newest);
}

} // namespace cuda
