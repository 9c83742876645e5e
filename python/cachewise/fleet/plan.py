"""Which host is tuned next, and by which of its workers. Pure: told what happened and when, in seconds."""

from dataclasses import dataclass, field

# Failures after which a host is given up.
FAILURES = 3
# A busy host is asked again after so long, then twice that, up to the most.
FIRST_PAUSE, MOST_PAUSE = 15.0, 240.0
# How long a host without workers is waited for.
GRACE = 60.0


@dataclass
class Host:
    """A host that is to be tuned."""

    name: str
    key: str
    workers: set[str] = field(default_factory=set)
    # How often each of them failed.
    failed: dict[str, int] = field(default_factory=dict)
    running: str | None = None
    begun: float = 0.0
    not_before: float = 0.0
    pause: float = FIRST_PAUSE
    busy_since: float | None = None
    # When its last worker went.
    deserted: float | None = None
    # Why it is, or was last, not tuned.
    why: str = ""
    tuned: bool = False
    given_up: bool = False

    @property
    def over(self) -> bool:
        return self.tuned or self.given_up


@dataclass
class Plan:
    """All hosts, by machine."""

    # For how long a busy host is asked again.
    patience: float
    hosts: dict[str, Host] = field(default_factory=dict)

    def join(self, worker: str, machine: str, name: str, key: str) -> None:
        """A worker has said where it is."""
        host = self.hosts.setdefault(machine, Host(name, key))
        host.workers.add(worker)
        host.deserted = None
        if host.given_up and host.why == _GONE:
            host.given_up = False

    def leave(self, worker: str, now: float) -> list[str]:
        """A worker is gone. The machines whose tuning went with it."""
        lost = []
        for machine, host in self.hosts.items():
            if worker not in host.workers:
                continue
            host.workers.discard(worker)
            if not host.workers:
                host.deserted = now
            if host.running == worker:
                self.failed(machine, "its worker died", now)
                lost.append(machine)
        return lost

    def start(self, now: float) -> list[tuple[str, str]]:
        """What to begin now: machine and worker, at most one for each machine."""
        begun = []
        for machine, host in self.hosts.items():
            if host.over or host.running is not None:
                continue
            if not host.workers:
                if host.deserted is not None and now - host.deserted >= GRACE:
                    host.given_up, host.why = True, _GONE
                continue
            if now < host.not_before:
                continue
            worker = min(host.workers, key=lambda name: (host.failed.get(name, 0), name))
            host.running, host.begun = worker, now
            begun.append((machine, worker))
        return begun

    def tuned(self, machine: str) -> None:
        """It is done and kept."""
        host = self.hosts[machine]
        host.running, host.tuned, host.why = None, True, ""

    def busy(self, machine: str, why: str, now: float) -> None:
        """Somebody else uses it: it is asked again later, up to the end of patience."""
        host = self.hosts[machine]
        host.running, host.why = None, why
        host.busy_since = now if host.busy_since is None else host.busy_since
        if now - host.busy_since >= self.patience:
            host.given_up = True
        host.not_before = min(now + host.pause, host.busy_since + self.patience)
        host.pause = min(2 * host.pause, MOST_PAUSE)

    def failed(self, machine: str, why: str, now: float) -> None:
        """It went wrong: tried again at once, by another of its workers if it has one."""
        host = self.hosts[machine]
        who = host.running or ""
        host.failed[who] = host.failed.get(who, 0) + 1
        host.running, host.why = None, why
        host.given_up = sum(host.failed.values()) >= FAILURES
        host.not_before = now

    def late(self, now: float, limit: float) -> list[str]:
        """Machines whose tuning should have ended long ago."""
        hosts = self.hosts.items()
        return [machine for machine, host in hosts if host.running is not None and now - host.begun > limit]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return all(host.over for host in self.hosts.values())

    def progress(self) -> str:
        """Numbers of hosts, in words."""
        hosts = self.hosts.values()
        running = sum(host.running is not None for host in hosts)
        tuned, given_up = (sum(getattr(host, name) for host in hosts) for name in ("tuned", "given_up"))
        return f"{tuned} of {len(hosts)} hosts tuned, {running} running, {given_up} given up"


_GONE = "it has no workers any more"
