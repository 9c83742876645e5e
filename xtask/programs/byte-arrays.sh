# A Python service that buffers chunks of sound in byte arrays: buffers of many sizes grow, are joined and dropped, and a
# few small results between them live on.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import sys" "no Python"
    cat >chunks.py <<'PYTHON'
import hashlib
import random
import sys
import threading
import time

drawn = random.Random(5)
kept = []
digest = hashlib.sha256()


def session(number, rounds, numbers):
    for _ in range(rounds):
        sound = bytearray()
        for _ in range(numbers.randrange(20, 120)):
            sound += bytes(numbers.randrange(400, 9000))
        joined = bytes(sound) + bytes(numbers.randrange(1000, 200000))
        parts = [joined[at : at + 32000] for at in range(0, len(joined), 32000)]
        # A result of a few hundred bytes for each session, made while all else is there.
        kept.append((number, bytearray(parts[-1][:700]), len(joined)))


rounds = int(sys.argv[1])
threads = [
    threading.Thread(target=session, args=(number, rounds, random.Random(number))) for number in range(8)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(kept), sum(size for _, _, size in kept))
sys.stdout.flush()
time.sleep(0.5)
PYTHON
    ;;
run) "$(cat "$PREPARED/python")" "$PREPARED/chunks.py" "$(part 60)" ;;
esac
