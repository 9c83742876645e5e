"""The plan: never two at once on one host, and every host comes to an end."""

from cachewise.fleet.plan import FAILURES, FIRST_PAUSE, GRACE, Plan
from hypothesis import given, settings
from hypothesis import strategies as st

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["join", "leave", "tuned", "busy", "failed", "start", "wait"]),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    max_size=80,
)


@settings(max_examples=300, deadline=None)
@given(EVENTS)
def test_one_at_a_time_and_an_end(events):
    plan, now = Plan(patience=300), 0.0
    running: dict[str, str] = {}
    here: set[str] = set()

    def begin() -> None:
        for machine, worker in plan.start(now):
            assert machine not in running, "two tunings at once"
            assert worker in here, "a worker that is gone"
            assert worker.startswith(machine + "-"), "another host's worker"
            running[machine] = worker

    for what, host, nth in events:
        machine, worker = f"m{host}", f"m{host}-{nth}"
        now += 7
        if what == "join":
            here.add(worker)
            plan.join(worker, machine, machine, machine)
        elif what == "leave":
            here.discard(worker)
            for lost in plan.leave(worker, now):
                assert running.pop(lost) == worker
        elif what == "start":
            begin()
        elif what == "wait":
            now += 60
        elif machine in running:
            del running[machine]
            if what == "tuned":
                plan.tuned(machine)
            elif what == "busy":
                plan.busy(machine, "under load", now)
            else:
                plan.failed(machine, "broke", now)
    # From here on everything fails: it ends all the same, and says why.
    for _ in range(100):
        now += max(FIRST_PAUSE, GRACE)
        begin()
        for machine in list(running):
            del running[machine]
            plan.failed(machine, "broke", now)
    assert plan.over
    assert all(host.tuned or host.why for host in plan.hosts.values())


def test_a_failure_is_tried_by_another_worker():
    plan = Plan(patience=10)
    for worker in ("a", "b"):
        plan.join(worker, "m", "host", "key")
    tried = []
    for _ in range(FAILURES):
        [(machine, worker)] = plan.start(0)
        tried.append(worker)
        plan.failed(machine, "broke", 0)
    assert tried[:2] == ["a", "b"]
    assert plan.over and plan.hosts["m"].why == "broke"


def test_a_busy_host_is_asked_less_and_less_often_until_patience_ends():
    plan, now, asked = Plan(patience=100), 0.0, []
    plan.join("a", "m", "host", "key")
    while not plan.over:
        if plan.start(now):
            asked.append(now)
            plan.busy("m", "under load", now)
        now += 1
    assert asked == [0, 15, 45, 100]
    assert plan.hosts["m"].given_up


def test_a_host_whose_workers_are_gone_is_waited_for():
    plan = Plan(patience=10)
    plan.join("a", "m", "host", "key")
    plan.start(0)
    assert plan.leave("a", 5) == ["m"]
    assert plan.start(6) == [] and not plan.over
    plan.join("b", "m", "host", "key")
    assert plan.start(7) == [("m", "b")]
    plan.leave("b", 8)
    plan.start(8 + GRACE)
    assert plan.over
    # It is taken up again where one comes late.
    plan.join("c", "m", "host", "key")
    assert plan.start(9 + GRACE) == [("m", "c")]
