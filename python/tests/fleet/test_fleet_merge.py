"""Records, classes, agreement and the merged profile, on fleets of simulated tunings."""

import json
import shutil
import subprocess
from pathlib import Path

import duckdb
import fakes
import made_up
import numpy as np
import pyarrow.parquet as pq
import pytest
from cachewise.fleet import merge, records
from cachewise.fleet.agreement import Choices, middle, nearest
from cachewise.fleet.classes import CLIP, classify, distances
from cachewise.fleet.errors import FleetError
from cachewise.fleet.store import LIBC, UNKNOWN, Measured
from hypothesis import given, settings
from hypothesis import strategies as st

MODELS = ("zen3", "zen5", "cascade-lake")


@pytest.fixture(scope="module")
def made(tunings, tmp_path_factory):
    """A fleet of three models: sound hosts, and of each model one of every broken kind."""
    directory = tmp_path_factory.mktemp("fleet")
    broken = [(condition, 1) for condition in ("noisy", "throttled", "crowded")]
    for model in MODELS:
        fakes.fleet(tunings, model, [("sound", 10), *broken], directory)
    return directory


@pytest.fixture(scope="module")
def merged(made, cachewise):
    return merge.merge(made, cachewise, 3, print)


def test_one_profile_for_each_model_and_every_broken_host_named(merged):
    assert merged.hosts == 39
    assert [(one.hosts, one.reason) for one in merged.classes] == [(10, None)] * 3
    assert all("-sound-" in name for one in merged.classes for name in one.names)
    assert len(merged.outliers) == 9
    assert all("-sound-" not in outlier["host"] for outlier in merged.outliers)


def test_the_profile_is_what_the_tuner_decides_with_more_time(merged, made, cachewise):
    """The known answer: what every sound host of a simulated machine should have chosen."""
    for one in merged.classes:
        assert one.agreement >= 0.9 and one.served >= 0.95
        path = made / merge.RESULT / one.profile
        # The command reads it: checksum, kernels, ranges.
        words = [cachewise, "export", "json", "--profile", str(path)]
        assert json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        assert max(one.gain.values()) > 0.05 and min(one.gain.values()) > -0.01
        # No size at which the middle host would lose more than the tuner lets pass.
        assert max(row["ratio"] for row in one.rows) <= 1.03


def test_the_guides_query(made, tmp_path, monkeypatch):
    guide = (fakes.ROOT / "docs" / "guide" / "fleets.md").read_text()
    query = guide.split("```sql\n")[1].split("```")[0]
    (tmp_path / "fleet").symlink_to(made)
    monkeypatch.chdir(tmp_path)
    rows = duckdb.sql(query).fetchall()
    assert {row[0] for row in rows} == {path.name.removeprefix("cpu=") for path in (made / "records").glob("*/*")}
    assert [row[2] for row in rows if row[1] == "libc"] == [1, 1, 1]
    assert any(row[1] == "copy.avx" and row[2] > 0 and row[3] == 13 for row in rows)


def test_two_kinds_of_host_of_one_model_are_split(tunings, cachewise, tmp_path):
    fakes.fleet(tunings, "zen3", [("sound", 8)], tmp_path)
    stem = next(iter(sorted(tunings.glob("zen3-other-*.profile")))).stem
    for number in range(4):
        records.write(tmp_path, fakes.simulated(tunings, stem, f"other{number}"))
    found = merge.merge(tmp_path, cachewise, 3, print)
    assert [(one.letter, one.hosts) for one in found.classes] == [("a", 8), ("b", 4)]
    assert all(name.startswith("other") for name in found.classes[1].names)


def test_damaged_files_and_other_versions_are_left_out_and_named(tunings, cachewise, tmp_path):
    fakes.fleet(tunings, "zen3", [("sound", 4)], tmp_path)
    victim = records.listing(tmp_path)[0]
    whole = victim.read_bytes()
    victim.write_bytes(whole[: len(whole) // 2])
    newer = records.SCHEMA + 1
    later = tmp_path / "records" / f"schema={newer}" / "cpu=AuthenticAMD-25-1-1"
    later.mkdir(parents=True)
    shutil.copy(records.listing(tmp_path)[1], later)
    told: list[str] = []
    found = merge.merge(tmp_path, cachewise, 3, told.append)
    assert [one.hosts for one in found.classes] == [3]
    assert len(found.damaged) == 1 and str(victim) in found.damaged[0]["file"]
    assert any("not a whole Parquet file" in line for line in told)
    assert any(f"schema {newer} are left as they are" in line for line in told)
    assert victim.exists() and len(list(later.iterdir())) == 1
    keys, damaged = records.done(tmp_path)
    assert len(keys) == 3 and len(damaged) == 1


def test_a_foreign_schema_under_this_name_is_refused(tunings, tmp_path):
    records.write(tmp_path, fakes.simulated(tunings, "zen3-sound-100", "one"))
    [path] = records.listing(tmp_path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"cachewise-fleet-schema": "9"}), path)
    assert records.check(path) == f"schema: found 9, accepted {records.SCHEMA}"
    with pytest.raises(FleetError, match=f"no records of schema {records.SCHEMA}"):
        merge.merge(tmp_path, "cachewise", 3, print)


def test_a_host_counts_once_by_its_latest(tunings, cachewise, tmp_path):
    fakes.fleet(tunings, "zen3", [("sound", 3)], tmp_path)
    path = records.listing(tmp_path)[0]
    shutil.copy(path, path.with_name("copy.parquet"))
    assert merge.merge(tmp_path, cachewise, 3, print).hosts == 3


def test_an_unfinished_record_is_refused(tunings, tmp_path):
    one = fakes.simulated(tunings, "zen3-sound-100", "one")
    lines = one.record.splitlines()
    for cut in (lines[:-1], lines[1:], [lines[0][:50], *lines[1:]], []):
        broken = records.Tuning("one", "one", one.profile, "\n".join(cut), 1.0, 0.0)
        with pytest.raises(records.RefusedError):
            records.write(tmp_path, broken)
    assert not records.listing(tmp_path)


def test_one_bad_host_changes_nothing_that_was_there(tunings, cachewise, tmp_path, merged, made):
    """A merge that fails leaves the profiles of the one before."""
    index = (made / merge.RESULT / merge.INDEX).read_bytes()
    with pytest.raises(FleetError):
        merge.merge(made, str(Path("/bin/false")), 3, print)
    assert (made / merge.RESULT / merge.INDEX).read_bytes() == index


def curves(kinds, each, noise, seed):
    random = np.random.default_rng(seed)
    shapes = random.normal(0, 0.3, (kinds, 200))
    rows = np.repeat(shapes, each, axis=0) + random.normal(0, noise, (kinds * each, 200))
    return rows.astype(np.float32)


@settings(max_examples=30, deadline=None)
@given(
    kinds=st.integers(1, 3),
    each=st.integers(5, 40),
    noise=st.floats(0.005, 0.05),
    broken=st.integers(0, 2),
    seed=st.integers(0, 1000),
)
def test_classes_are_found_whatever_the_noise(kinds, each, noise, broken, seed):
    values = curves(kinds, each, noise, seed)
    strange = curves(max(broken, 1), 1, 0.0, seed + 5000)[:broken]
    values = np.vstack([values, strange])
    order = np.random.default_rng(seed).permutation(len(values))
    found = classify(values[order])
    truth = np.r_[np.repeat(np.arange(kinds), each), np.full(broken, -1)][order]
    assert found.count == kinds
    for kind in range(kinds):
        assert len(set(found.of[truth == kind])) == 1
    assert (found.of[truth == -1] == -1).all()


def test_hosts_that_are_nearer_to_each_other_than_noise_make_no_class_of_their_own():
    """Copies of twenty tunings of one machine: a merge of 10,000 copies of 120 fell into eleven classes."""
    values = np.tile(curves(1, 20, 0.03, 1), (10, 1))
    found = classify(values)
    assert found.count == 1 and (found.of == 0).all()


def test_a_damaged_page_is_named(tunings, tmp_path):
    """The file's ends are whole, what is between them is not."""
    fakes.fleet(tunings, "zen3", [("sound", 3)], tmp_path)
    victim = records.listing(tmp_path)[1]
    content = bytearray(victim.read_bytes())
    content[1000 : len(content) * 3 // 4] = bytes(len(content) * 3 // 4 - 1000)
    victim.write_bytes(content)
    assert records.check(victim) is None
    with pytest.raises(FleetError, match=victim.name):
        merge.merge(tmp_path, "cachewise", 3, print)


def test_hosts_that_choose_otherwise_get_no_profile(tunings, cachewise, tmp_path):
    """Their figures are alike, and half of them have decided for libc everywhere."""
    for number in range(6):
        one = fakes.simulated(tunings, f"zen3-sound-{100 + number}", f"host{number}")
        lines = [json.loads(line) for line in one.record.splitlines()]
        for line in lines:
            if line["type"] == "decisions" and number % 2:
                line["kernels"] = [{**decision, "kernel": "libc"} for decision in line["kernels"]]
        record = "\n".join(json.dumps(line) for line in lines)
        records.write(tmp_path, records.Tuning(one.host, one.host_key, one.profile, record, 60.0, 0.0))
    [found] = merge.merge(tmp_path, cachewise, 3, print).classes
    assert found.hosts == 6 and found.agreement < 0.9 < found.served
    assert found.profile is None and found.reason.startswith("its hosts agree at ")


def test_a_profile_that_does_not_serve_its_hosts_is_not_written(tunings, tmp_path):
    fakes.fleet(tunings, "zen3", [("sound", 4)], tmp_path)
    tool = tmp_path / "decides"
    tool.write_text("#!/bin/sh\necho decide copy unknown 256 max copy.rep.movsb > $5\n")
    tool.chmod(0o755)
    [found] = merge.merge(tmp_path, str(tool), 3, print).classes
    assert found.agreement >= 0.9 > found.served
    assert found.profile is None and found.reason.startswith("it would serve its hosts at ")
    assert not list((tmp_path / merge.RESULT).rglob("*.profile"))


def test_a_made_up_fleet(tunings, cachewise, tmp_path):
    """As one of 10,000 is made; here there are few broken hosts, and few tunings that hosts are made of."""
    made_up.make(tunings, tmp_path, 180, 2)
    found = merge.merge(tmp_path, cachewise, 3, print)
    assert found.hosts == 180
    assert [(one.letter, one.hosts, one.reason) for one in found.classes] == [
        ("a", 53, None), ("b", 6, None), ("", 59, None), ("", 59, None),
    ]  # fmt: skip
    assert min(one.agreement for one in found.classes) >= 0.9
    assert min(one.served for one in found.classes) >= 0.95
    assert all("-other-" in name for name in found.classes[1].names)
    assert len(found.outliers) == 3 and all("-sound-" not in one["host"] for one in found.outliers)


def measured(logs, chosen, error=0.01):
    logs = np.array(logs, np.float32)
    return Measured(logs, np.full_like(logs, error), np.array(chosen, np.int32))


def test_hosts_that_lose_by_a_profile_are_not_served():
    """Half of the hosts lose 20 % by it and have shown that; the others chose it."""
    logs = [[-0.2, -0.1], [-0.2, -0.1], [0.2, -0.1], [0.2, -0.1]]
    theirs, ours = [[0], [0], [1], [LIBC]], np.array([0], np.int32)
    assert Choices(measured(logs, theirs), 1).served(ours)[:, 0].tolist() == [True, True, False, False]
    # A loss that is not shown is allowed; one that no host measured is not.
    assert Choices(measured(logs, theirs, 0.3), 1).served(ours).all()
    assert not Choices(measured(logs, theirs), 1).served(np.array([UNKNOWN], np.int32)).any()


def test_two_hosts_agree_within_three_in_a_hundred_on_one_of_them():
    def of(*logs, error=0.001):
        return Choices(measured(logs, [[0], [1]], error), 1).agreement()[:, 0].tolist()

    assert of([0.0, 0.02], [0.0, 0.5]) == [1, 1]
    assert of([0.0, 0.5], [0.0, 0.02]) == [1, 1]
    assert of([0.0, 0.05], [0.0, 0.5]) == [0, 0]
    # A figure within one host's interval is not shown to differ.
    assert of([0.0, 0.05], [0.0, 0.5], error=0.01) == [1, 1]
    assert of([0.0, 0.08], [0.0, 0.5], error=0.01) == [0, 0]
    assert of([0.0, np.nan], [np.nan, 0.0]) == [0, 0]
    # Nobody to disagree with; and hosts that decided nothing have not chosen the same.
    assert Choices(measured([[0.0]], [[0]]), 1).agreement().tolist() == [[1]]
    assert Choices(measured([[0.0], [0.0]], [[UNKNOWN], [UNKNOWN]]), 1).agreement().tolist() == [[0], [0]]


@given(hosts=st.integers(2, 40), share=st.floats(0, 1), seed=st.integers(0, 99))
@settings(deadline=None)
def test_agreement_is_the_share_of_pairs(hosts, share, seed):
    """Two choices that are far apart: a pair agrees where both made the same one."""
    chosen = (np.random.default_rng(seed).random(hosts) < share).astype(np.int32)
    found = Choices(measured([[0.0, 1.0]] * hosts, chosen[:, None]), 1).agreement()
    assert ((0 <= found) & (found <= 1)).all()
    if chosen.all() or not chosen.any():
        assert (found == 1).all()
    elif hosts <= 9:  # Then everybody is everybody's partner.
        same = [(chosen == one).sum() - 1 for one in chosen]
        assert np.allclose(found[:, 0] * (hosts - 1), same)


HOLED = st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(1, 6), st.integers(0, 999))


def holed(hosts, kernels, steps, seed):
    random = np.random.default_rng(seed)
    values = random.normal(0, 0.2, (hosts, kernels * steps)).astype(np.float32)
    values[random.random(values.shape) < random.random()] = np.nan
    return values


@given(HOLED)
@settings(deadline=None)
def test_the_nearest_size_stands_in_for_one_that_was_not_measured(of):
    values, steps = holed(*of), of[2]
    found = nearest(values, steps)
    for (host, column), value in np.ndenumerate(found):
        first = column - column % steps
        there = [at for at in range(first, first + steps) if not np.isnan(values[host, at])]
        # The larger of two that are as near.
        best = min(there, key=lambda at: (abs(at - column), -at), default=column)
        assert np.array_equal(value, values[host, best], equal_nan=True)


@given(HOLED)
@settings(deadline=None)
def test_the_middle_is_of_those_that_have_a_figure(of):
    values = holed(*of)
    for column, value in enumerate(middle(values)):
        known = values[:, column][~np.isnan(values[:, column])]
        if len(known) * 2 < len(values) or not len(known):
            assert np.isnan(value)
        else:
            assert value == pytest.approx(np.median(known))


@given(HOLED)
@settings(deadline=None)
def test_distances_are_means_over_what_both_have(of):
    values = holed(*of)
    sample = np.arange(len(values))
    found = distances(values, sample)
    for host in sample:
        for other in sample:
            both = ~np.isnan(values[host]) & ~np.isnan(values[other])
            off = np.abs(values[host] - values[other])[both]
            few = both.sum() < 0.5 * (~np.isnan(values[other])).sum()
            mean = np.minimum(off, CLIP).mean() if len(off) else 0
            assert found[host, other] == pytest.approx(CLIP if few else mean, abs=1e-5)
