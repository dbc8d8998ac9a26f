#pragma once

#include "messages/compile.hpp"
#include "messages/inspect_attempt.hpp"
#include "messages/inspect_lease.hpp"
#include "messages/measure.hpp"
#include "messages/prepare.hpp"
#include "messages/verdict.hpp"

namespace gristmill {

GRISTMILL_FIELDS(compile_request, attempt, candidate, device_model)
GRISTMILL_FIELDS(compiled_entry, expression, symbol)
GRISTMILL_FIELDS(compiled_unit, key, code, entries)
GRISTMILL_FIELDS(compiled_candidate, candidate, status, units, log, findings, toolchain, cached)
GRISTMILL_FIELDS(rival, candidate, units)
GRISTMILL_FIELDS(
  measure_request, under, attempt, candidate, units, workloads, part, last, purpose, draw, against)
GRISTMILL_FIELDS(time_term, name, ns)
GRISTMILL_FIELDS(device_activity, kind, name, grid, block, bytes)
GRISTMILL_FIELDS(device_weather, readings, sm_mhz_min, sm_mhz_max, memory_mhz_min, memory_mhz_max,
  power_mw_max, temperature_c_max, throttle_bits, foreign_processes)
GRISTMILL_FIELDS(timing_record, method, fallback, flush, warm_up_calls, span_ns, device_ns,
  activities, taken_again, canary_khz_before, canary_khz_after, weather, digested, digests_equal,
  written_out)
GRISTMILL_FIELDS(written_call, check, call)
GRISTMILL_FIELDS(comparison_block, rival, median_ns, mad_ns, samples)
GRISTMILL_FIELDS(workload_measurement, uuid, status, time_ns, samples_ns, terms, bound, shrunken,
  detail, timing, written, blocks)
GRISTMILL_FIELDS(measurement, attempt, gpu, token, part, device, origin, workloads, output_folder,
  findings, held, failure_text)
GRISTMILL_FIELDS(
  judge_request, attempt, kind, candidate, effort, workloads, measured, purpose, draw, against)
GRISTMILL_FIELDS(refused_request, attempt, kind, candidate, effort, compiled)
GRISTMILL_FIELDS(output_evaluation, output, passed, has_nan, has_inf, elements, mismatches,
  matched_ratio, max_absolute_error, max_relative_error, all_zero, miss_tiles, ulp_histogram,
  relative_rms_error)
GRISTMILL_FIELDS(workload_evaluation, uuid, status, shrunken, outputs, calls, call, detail)
GRISTMILL_FIELDS(evaluation, workloads)
GRISTMILL_FIELDS(finding, rule, workload, detail, fatal)
GRISTMILL_FIELDS(workload_verdict, uuid, status, time_ns, baseline_ns, floor_ns, speedup, sol_score,
  needs_audit, detail)
GRISTMILL_FIELDS(verdict, status, origin, workloads, objective_ns, speedup, sol_score, floor_share,
  findings, reason, wants_promotion, incumbent, incumbent_stays, evidence, feedback)
GRISTMILL_FIELDS(prepare_request, problem, draw, candidate)
GRISTMILL_FIELDS(draw_over, draw)
GRISTMILL_FIELDS(axis_value, name, value)
GRISTMILL_FIELDS(
  prepared_workload, uuid, shrunken, check_axes, sets, sets_note, floor_ns, floor_method)
GRISTMILL_FIELDS(prepared_problem, problem, status, workloads, graph, has_bounds, reason)

} // namespace gristmill

GRISTMILL_BEGIN_TYPES(gristmill_measure, 2)
GRISTMILL_TYPE(gristmill_measure, gristmill::compile_request)
GRISTMILL_TYPE(gristmill_measure, gristmill::compiled_candidate)
GRISTMILL_TYPE(gristmill_measure, gristmill::measure_request)
GRISTMILL_TYPE(gristmill_measure, gristmill::measurement)
GRISTMILL_TYPE(gristmill_measure, gristmill::judge_request)
GRISTMILL_TYPE(gristmill_measure, gristmill::refused_request)
GRISTMILL_TYPE(gristmill_measure, gristmill::verdict)
GRISTMILL_TYPE(gristmill_measure, gristmill::prepare_request)
GRISTMILL_TYPE(gristmill_measure, gristmill::prepared_problem)
GRISTMILL_TYPE(gristmill_measure, gristmill::draw_over)
GRISTMILL_END_TYPES(gristmill_measure)
