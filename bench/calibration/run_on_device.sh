#!/usr/bin/env bash
# Measures a real GPU for the calibration of the mock's clock: bench/calibration/run_on_device.sh OUT [PHASE...]
#
# Run from the root of the source tree. Phases, in this order when none is named: build probes kernels
# sanitizer ncu. `build` is done by itself when something is missing. By name only: `sealed` times the
# kernels that `kernels` leaves out (once, after the model is frozen), `templates` the points of our own
# templates that `gristmill-bench-corpus write templates FOLDER` wrote (CALIBRATION_TEMPLATES, else
# build/calibration/templates), `expansion` counts what PTX instructions and library functions become.
# Results go to OUT: probes.csv, kernels.csv, kernel_samples.csv, sealed.csv, sealed_samples.csv,
# variants.csv, expansion.csv, sanitizer.csv, ncu.csv, gpu.csv (clocks, power, temperature while it
# ran), machine.txt, log.txt. Needs nvcc and nvidia-smi; `sanitizer` needs compute-sanitizer, `ncu` and
# `expansion` need ncu and python3. Changes no setting of the GPU. Limits in seconds by
# KERNELS_SECONDS (235), TEMPLATES_SECONDS (120), SANITIZER_SECONDS (480), NCU_SECONDS (480).
set -u
if [ $# -lt 1 ] || [ ! -f bench/calibration/corpus.txt ]; then
  echo "usage, from the root of the source tree: run_on_device.sh OUT [build|probes|kernels|sealed|templates|expansion|sanitizer|ncu...]" >&2
  exit 2
fi
out=$1; shift
phases=${*:-build probes kernels sanitizer ncu}
corpus=bench/calibration/corpus.txt
built=${CALIBRATION_BUILD:-build/calibration}
cubins=$built/cubins
jobs=$(nproc)
mkdir -p "$out" "$built/logs" "$cubins"
log=$out/log.txt
failures=0

for place in /usr/local/cuda/bin /opt/nvidia/nsight-compute/*/; do
  [ -d "$place" ] && PATH=$PATH:$place
done
target=(-gencode arch=compute_90a,code=sm_90a)

say() { echo "$*" | tee -a "$log"; }

# "NAME FOLDER -DX=1 ..." for each kernel, from the defines of its small size.
commands() {
  awk '$1=="kernel"{if(n)print n,d; n=$2" "$3; d=""; small=0} $1=="size"{small=($2=="small")}
       $1=="define"&&small{d=d" -D"$2"="$3} END{print n,d}' "$corpus"
}
names() { awk -v sealed="$1" '$1=="kernel"&&(sealed||$4!="sealed"){print $2}' "$corpus"; }
entries() { awk -v k="$1" '$1=="kernel"{on=($2==k)} on&&$1=="launch"{print $2}' "$corpus" | sort -u | paste -sd'|'; }

build() {
  local begin=$SECONDS
  {
    echo "nvcc -std=c++17 -O2 -I. ${target[*]} -o $built/harness bench/calibration/harness.cu >$built/logs/harness.txt 2>&1 || echo no harness"
    for probe in bench/calibration/probes/*.cu; do
      p=$(basename "$probe" .cu)
      echo "nvcc -std=c++17 -O2 -I. ${target[*]} -c -o $built/probe_$p.o $probe >$built/logs/probe_$p.txt 2>&1 || echo no probe: $p"
    done
    commands | while read -r name folder defines; do
      echo "nvcc -std=c++20 -O3 -lineinfo -cubin ${target[*]} -Xptxas -v $defines -o $cubins/$name.cubin tests/corpus/device_kernels/$folder/kernel.cu >$built/logs/$name.txt 2>&1 || echo no cubin: $name"
    done
  } | xargs -P "$jobs" -d '\n' -I{} bash -c '{}' | tee -a "$log"
  nvcc -o "$built/probes" "$built"/probe_*.o >"$built/logs/link.txt" 2>&1 || say "the probes do not link"
  say "build: $(ls "$cubins" | wc -l) cubins, $((SECONDS - begin)) s"
  "$built/harness" dry-run "$corpus" "$cubins" | tee -a "$log"
}

machine() {
  {
    echo "== $(date -u) $1"
    nvcc --version | tail -2
    nvidia-smi --query-gpu=name,driver_version,vbios_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,clocks.sm,clocks.mem,temperature.gpu,pstate,mig.mode.current,ecc.mode.current --format=csv
    echo "other processes on the GPU:"
    nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv
  } >>"$out/machine.txt" 2>&1
}

probes() {
  say "probes: $(timeout 200 "$built/probes" "$out/probes.csv" 2>&1 | tee -a "$log" | tail -12)"
  say "probes: $(wc -l <"$out/probes.csv") rows"
}

kernels() {
  timeout 300 "$built/harness" check-all "$corpus" "$cubins" 2>&1 | tee -a "$log"
  timeout $((${KERNELS_SECONDS:-235} + 45)) "$built/harness" time "$corpus" "$cubins" "$out" "${KERNELS_SECONDS:-235}" 2>&1 | tee -a "$log"
}

sealed() {
  timeout 120 "$built/harness" sealed "$corpus" "$cubins" "$out" 90 2>&1 | tee -a "$log"
}

templates() {
  local begin=$SECONDS from=${CALIBRATION_TEMPLATES:-build/calibration/templates} to=$built/template_cubins
  if [ ! -f "$from/corpus.txt" ]; then
    say "templates: no $from/corpus.txt"; failures=1; return
  fi
  mkdir -p "$to"
  awk '$1=="kernel"{n=$2; d[n]=""; order[++k]=n} $1=="define"{d[n]=d[n]" -D"$2"="$3}
       END{for(i=1;i<=k;++i)print order[i] d[order[i]]}' "$from/corpus.txt" | while read -r name defines; do
    [ "$to/$name.cubin" -nt "$from/$name.cu" ] || echo "nvcc -std=c++20 -O3 -cubin ${target[*]} $defines -o $to/$name.cubin $from/$name.cu >$built/logs/$name.txt 2>&1 || echo no cubin: $name"
  done | xargs -P "$jobs" -d '\n' -I{} bash -c '{}' | tee -a "$log"
  say "templates: $(ls "$to" | wc -l) cubins of $(grep -c ^kernel "$from/corpus.txt"), $((SECONDS - begin)) s"
  timeout 200 "$built/harness" rank "$from/corpus.txt" "$to" "$out" "${TEMPLATES_SECONDS:-120}" 2>&1 | tee -a "$log"
}

expansion() {
  if ! command -v ncu >/dev/null; then
    say "expansion: no ncu here"; failures=1; return
  fi
  local pipes
  timeout 60 "$built/probes" "$built/chained.csv" expansion 2>&1 | tee -a "$log"
  # The pipes that this GPU's counters tell apart.
  pipes=$(ncu --query-metrics 2>/dev/null | grep -oE '^smsp__inst_executed_pipe_(alu|fma|fmaheavy|fp16|fp64|xu|lsu|uniform|cbu|adu)\b' | sort -u)
  say "expansion: counters ${pipes//$'\n'/ }"
  timeout 300 ncu --clock-control none --csv --page raw --print-units base -k regex:expand \
    --metrics "smsp__inst_executed.sum,$(printf '%s.sum\n' $pipes | paste -sd,)" \
    "$built/probes" "$built/under_ncu.csv" expansion >"$built/logs/expansion.txt" 2>&1
  cp "$built/logs/expansion.txt" "$built/chained.csv" "$out"
  python3 bench/calibration/expansion_table.py "$built/chained.csv" "$built/logs/expansion.txt" >"$out/expansion.csv" ||
    { say "expansion: $built/logs/expansion.txt is not reduced"; failures=1; }
  say "expansion: $(wc -l <"$out/expansion.csv") rows"
}

sanitizer() {
  if ! command -v compute-sanitizer >/dev/null; then
    say "sanitizer: no compute-sanitizer here"; failures=1; return
  fi
  export corpus cubins built
  local tool
  for tool in memcheck racecheck initcheck synccheck; do names 1 | sed "s/$/ $tool/"; done |
    timeout "${SANITIZER_SECONDS:-480}" xargs -P 8 -L 1 bash -c '
      name=$0 tool=$1 log=$built/logs/$name.$tool.txt
      [ "$tool" = initcheck ] && export CALIBRATION_NO_POISON=1
      timeout 90 compute-sanitizer --tool $tool --print-limit 2 --error-exitcode 9 $built/harness check $corpus $cubins $name >$log 2>&1
      code=$?
      said=$(grep -m1 -E "=========.*(Invalid|hazard|Uninit|Barrier|error|Error|Internal|not supported)" $log | tr ",\"" "; " | cut -c1-160)
      echo "$name,$tool,$code,\"$said\""' >"$built/sanitizer.rows"
  { echo "name,tool,exit_code,said"; sort "$built/sanitizer.rows"; } >"$out/sanitizer.csv"
  local all clean
  all=$(wc -l <"$built/sanitizer.rows"); clean=$(grep -c ',0,' "$built/sanitizer.rows")
  say "sanitizer: $clean of $all checks clean ($(($(names 1 | wc -l) * 4)) wanted)"
  grep -v ',0,' "$built/sanitizer.rows" | sort | head -40 | tee -a "$log"
}

ncu_phase() {
  if ! command -v ncu >/dev/null; then
    say "ncu: no ncu here"; failures=1; return
  fi
  local begin=$SECONDS name file few all wanted raw=$built/ncu_raw.csv done_count=0 left=0
  few=gpu__time_duration.sum,dram__sectors_read.sum,dram__sectors_write.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum
  all=$few,lts__t_sectors_lookup_hit.sum,lts__t_sectors_op_atom.sum,lts__t_sectors_op_red.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,l1tex__data_bank_conflicts_pipe_lsu.sum,smsp__inst_executed.sum,sm__cycles_elapsed.max,sm__warps_active.avg.pct_of_peak_sustained_active,sm__inst_executed_pipe_tensor.sum,launch__registers_per_thread
  wanted=$all
  : >"$raw"
  for name in $(names 0); do
    if [ $((SECONDS - begin)) -gt "${NCU_SECONDS:-480}" ]; then left=$((left + 1)); continue; fi
    file=$built/logs/$name.ncu.csv
    for metrics in "$wanted" "$few"; do
      timeout 60 ncu --clock-control none --csv --page raw --print-units base --metrics "$metrics" \
        -k "regex:^($(entries "$name"))\$" -c 8 "$built/harness" once "$corpus" "$cubins" "$name" >"$file" 2>&1
      grep -q '^"ID"' "$file" && break
      [ "$metrics" = "$few" ] || { [ "$done_count" = 0 ] && wanted=$few; }
    done
    if grep -q '^"ID"' "$file"; then
      done_count=$((done_count + 1))
      awk -v n="$name" '/^"ID"/{on=1} on{print "\"" n "\"," $0}' "$file" >>"$raw"
    else
      say "ncu: nothing for $name: $(tail -1 "$file" | cut -c1-160)"
    fi
  done
  python3 bench/calibration/reduce_ncu.py "$raw" >"$out/ncu.csv" || { say "ncu: $raw is not reduced"; failures=1; }
  say "ncu: $done_count kernels, $left left out for time, $((SECONDS - begin)) s"
}

complete() {
  [ -x "$built/harness" ] && [ -x "$built/probes" ] && [ "$(ls "$cubins" | wc -l)" -ge "$(names 1 | wc -l)" ]
}

nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,pstate,clocks_event_reasons.active,utilization.gpu --format=csv,nounits -lms 500 >>"$out/gpu.csv" 2>/dev/null &
watcher=$!
trap 'kill $watcher 2>/dev/null' EXIT
machine before
for phase in $phases; do
  begin=$SECONDS
  [ "$phase" = build ] || complete || build
  case $phase in
    build) build ;;
    probes) probes ;;
    kernels) kernels ;;
    sealed) sealed ;;
    templates) templates ;;
    expansion) expansion ;;
    sanitizer) sanitizer ;;
    ncu) ncu_phase ;;
    *) echo "run_on_device.sh: no phase $phase" >&2; exit 2 ;;
  esac
  say "phase $phase: $((SECONDS - begin)) s"
done
machine after

echo "== summary"
if [ -f "$out/kernels.csv" ]; then
  awk -F, 'NR>1&&$4=="official"{printf "%-26s %9.1f us +- %5.1f  %s\n",$1,$5,$6,$16}' "$out/kernels.csv"
fi
grep -hE "WRONG|FAILED|NOT DONE|no cubin|no probe|no harness" "$log" | sort -u | head -20
ls -la "$out"
exit $failures
