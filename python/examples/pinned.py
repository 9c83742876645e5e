"""What pinned host memory costs on a machine with an NVIDIA device: by the driver, by PyTorch if it is
there, privately, and leased by a second process.

    cachewise scrubd --size 32G --segment 32G &
    python pinned.py --size 32G --rounds 3 > pinned.json

Each way runs in a process of its own, in turns; one JSON object a line with its seconds, and a last one with
the medians. It takes about a minute for 32 GiB and three rounds.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import time


def by_driver(size):
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    for call in (
        lambda: cuda.cuInit(0),
        lambda: cuda.cuDeviceGet(ctypes.byref(device), 0),
        lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        lambda: cuda.cuCtxPushCurrent_v2(context),
    ):
        if code := call():
            raise SystemExit(f"the driver refused: error {code}")
    begun = time.perf_counter()
    if code := cuda.cuMemHostAlloc(ctypes.byref(memory), ctypes.c_size_t(size), 1):
        raise SystemExit(f"cuMemHostAlloc: error {code}")
    return {"seconds": time.perf_counter() - begun}


def by_pytorch(size):
    import torch

    torch.cuda.init()
    begun = time.perf_counter()
    torch.empty(size, dtype=torch.uint8, pin_memory=True)
    return {"seconds": time.perf_counter() - begun}


def by_cachewise(size, path):
    import cachewise.cuda

    # The driver and its context are not what is compared.
    cachewise.cuda.pinned("2M", path="/nonexistent")
    begun = time.perf_counter()
    memory = cachewise.cuda.pinned(size, path=path)
    told = {"seconds": time.perf_counter() - begun, "leased": memory.leased, "why_not": memory.why_not}
    told["is_zero"] = bytes(memory[:4096]).count(0) == 4096 and bytes(memory[-4096:]).count(0) == 4096
    try:
        told["torch_is_pinned"] = bool(memory.torch().is_pinned())
    except ImportError:
        pass
    return told


WAYS = {
    "cuMemHostAlloc": lambda size, socket: by_driver(size),
    "torch": lambda size, socket: by_pytorch(size),
    "private": lambda size, socket: by_cachewise(size, "/nonexistent"),
    "leased": by_cachewise,
}


def main():
    from cachewise._sizes import parse_size

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--size", default="8G", type=parse_size)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--socket", help="of scrubd; the usual one by default")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(WAYS[options.way](options.size, options.socket)))
        return
    seconds = {way: [] for way in WAYS}
    for number in range(options.rounds):
        for way in WAYS:
            command = [sys.executable, __file__, "--size", str(options.size), "--way", way]
            command += ["--socket", options.socket] if options.socket else []
            done = subprocess.run(command, capture_output=True, text=True)
            told = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr[-300:]}
            print(json.dumps({"way": way, "round": number, "bytes": options.size, **told}), flush=True)
            if "seconds" in told:
                seconds[way].append(told["seconds"])
    print(json.dumps({"medians": {way: statistics.median(all) for way, all in seconds.items() if all}}))


if __name__ == "__main__":
    main()
