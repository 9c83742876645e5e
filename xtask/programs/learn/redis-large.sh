# Redis with values of megabytes, under its own load generator, saved at the end.
set -eu
case $1 in
prepare)
    command -v redis-server >/dev/null || { echo "redis-server not installed"; exit 77; }
    command -v redis-benchmark >/dev/null || { echo "redis-benchmark not installed"; exit 77; }
    ;;
run)
    redis-server --port 0 --unixsocket "$PWD/socket" --dir "$PWD" --save '' --appendonly no \
        --proto-max-bulk-len 64mb --daemonize no >server.log 2>&1 &
    server=$!
    trap 'kill $server 2>/dev/null || true' EXIT
    ask() { redis-cli -s socket "$@"; }
    tries=0
    until ask ping >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "no answer"; cat server.log; exit 1; }
        sleep 0.05
    done
    redis-benchmark -s socket -q -n 100 -c 2 -d 3000000 -t set,get >told
    ask strlen key:__rand_int__
    ask eval 'local s = string.rep("0123456789abcdef", 65536)
        for i = 1, 60 do redis.call("setrange", "grown", i * 4096, s) redis.call("get", "grown") end
        return redis.sha1hex(redis.call("get", "grown"))' 0
    ask dbsize
    ask shutdown nosave >/dev/null 2>&1 || true
    wait $server
    ;;
esac
