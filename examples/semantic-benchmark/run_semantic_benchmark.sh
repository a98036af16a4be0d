#!/bin/sh
# run_semantic_benchmark.sh DATASET SPLIT [further options of `benchmark run`]
set -eu
dataset=$1 split=$2
shift 2
day=$(date +%Y%m%d)
mkdir -p results
convoscope benchmark run --track semantic --mode tags --dataset "$dataset" --split "$split" "$@" \
  --output "results/semantic_tags_$day.json" --gate > results/tags.txt
if [ -n "${ANTHROPIC_API_KEY:-}" ]; then
  convoscope benchmark run --track semantic --mode summary --dataset "$dataset" --split "$split" --limit 20 \
    --output "results/semantic_summary_$day.json" > results/summary.txt
fi
echo "Benchmark complete. Results in results/"
