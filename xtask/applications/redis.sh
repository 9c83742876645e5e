# Redis under redis-benchmark: small values, values of 256 KiB, long replies.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_redis
    ;;
run)
    # The allocator under test is the server's, not that of who asks it.
    preload=${LD_PRELOAD-}
    unset LD_PRELOAD
    if [ -n "$preload" ]; then export LD_PRELOAD="$preload"; fi
    start_redis
    unset LD_PRELOAD
    await_redis
    begun=$(date +%s.%N)
    redis-benchmark -s socket -q -n 8000 -c 20 -d 1024 -t set,get,incr,lpush,hset,mset >told
    redis-benchmark -s socket -q -n 2000 -c 4 -d 262144 -t set,get >>told
    redis-benchmark -s socket -q -n 400 -c 8 -t lrange_600 >>told
    echo "$begun $(date +%s.%N)" | awk '{printf "%.6f", $2 - $1}' >"$SECONDS_FILE"
    redis_contents
    ;;
esac
