#!/usr/bin/env bash
# Measures everything in docs/measurements.md anew, into docs/measurements or the folder
# given. It takes about three quarters of an hour, in which the machine should do nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
to=${1:-docs/measurements}
mkdir -p "$to"
make build

lab() { # NAME FLAGS...
  local name=$1 status=0
  shift
  echo "lab $*"
  bin/tidegate lab "$@" --json > "$to/$name.json.new" || status=$?
  # 1 is a result, too: the file says what went wrong.
  [ "$status" -le 1 ] || { echo "the lab ended with $status" >&2; exit 1; }
  mv "$to/$name.json.new" "$to/$name.json"
}

echo "bench"
bin/tidegate bench --json > "$to/bench.json.new" || [ $? = 1 ] # not every figure passes on every machine
mv "$to/bench.json.new" "$to/bench.json"

lab steady    --scenario steady    --strategies all --writes 0.05 --duration 15s
lab lag-spike --scenario lag-spike --strategies all --duration 10s
lab lag-spike-long --scenario lag-spike --strategies sticky,round-robin,tidegate --duration 24s --writes 0.02 --rate 500
for scenario in all-lag bulk-write idle idle-writer crash-backend ddl churn; do
  lab "$scenario" --scenario "$scenario" --duration 10s
done
for carrier in header cookie redis event; do # three servers, HTTP and a balancer on the same cores: a smaller rate
  lab "carrier-$carrier" --carrier "$carrier" --scenario lag-spike --rate 300 --duration 10s
done
lab lost-token       --scenario lost-token --rate 300 --duration 10s
lab lost-token-fresh --scenario lost-token --rate 300 --duration 10s --missing fresh
lab lost-token-redis --scenario lost-token --rate 300 --duration 10s --carrier redis
for scenario in restart-replica kill-replica deploy; do
  lab "$scenario" --scenario "$scenario" --duration 15s
done
lab hang     --scenario hang     --duration 20s
lab backfill --scenario backfill --duration 10s
lab all-lag-small-primary --scenario all-lag --strategies tidegate --duration 10s --primary-slots 8 --primary-cost 8ms
lab pairs-slow-replica --scenario slow-replica --strategies tidegate --duration 20s --pairs 5
lab pairs-stampede     --scenario stampede --duration 20s --pairs 5
for lag in 25 50 200; do # reads that come close together, and as pages make them
  lab "slow-standby-apply-${lag}ms-close" --scenario slow-standby-apply --strategies tidegate --duration 12s --apply-delay "${lag}ms" --sessions 2 --rate 1000 --writes 0.003
  lab "slow-standby-apply-${lag}ms-web"   --scenario slow-standby-apply --strategies tidegate --duration 12s --apply-delay "${lag}ms" --sessions 96 --rate 300 --writes 0.08
done
slow() { # NAME FLAGS...
  local name=$1
  shift
  lab "slow-standby-apply-$name" --scenario slow-standby-apply --strategies tidegate --duration 12s "$@"
}
slow 25ms                  --apply-delay 25ms
slow 25ms-strong           --apply-delay 25ms --strong 0.1
slow 50ms                  --apply-delay 50ms
slow 50ms-wait-80ms        --apply-delay 50ms --wait 80ms
slow 50ms-wait-80ms-strong --apply-delay 50ms --wait 80ms --strong 0.1
