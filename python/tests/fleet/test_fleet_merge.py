"""Records, classes, agreement and the merged profile, on fleets of simulated tunings."""

import json
import shutil
import subprocess
from pathlib import Path

import fakes
import numpy as np
import pyarrow.parquet as pq
import pytest
from cachewise.fleet import merge, records
from cachewise.fleet.agreement import LIBC, UNKNOWN, agreement, nearest
from cachewise.fleet.classes import classify
from cachewise.fleet.errors import FleetError
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
        assert one.agreement >= 0.95 and one.agreement > one.same
        path = made / merge.RESULT / one.profile
        # The command reads it: checksum, kernels, ranges.
        words = [cachewise, "export", "json", "--profile", str(path)]
        assert json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        assert max(one.gain.values()) > 0.05 and min(one.gain.values()) > -0.01
        # No size at which the middle host would lose more than the tuner lets pass.
        assert max(row["ratio"] for row in one.rows) <= 1.03


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
    later = tmp_path / "records" / "schema=2" / "cpu=AuthenticAMD-25-1-1"
    later.mkdir(parents=True)
    shutil.copy(records.listing(tmp_path)[1], later)
    told: list[str] = []
    found = merge.merge(tmp_path, cachewise, 3, told.append)
    assert [one.hosts for one in found.classes] == [3]
    assert len(found.damaged) == 1 and str(victim) in found.damaged[0]["file"]
    assert any("not a whole Parquet file" in line for line in told)
    assert any("schema 2 are left as they are" in line for line in told)
    assert victim.exists() and len(list(later.iterdir())) == 1
    keys, damaged = records.done(tmp_path)
    assert len(keys) == 3 and len(damaged) == 1


def test_a_foreign_schema_under_this_name_is_refused(tunings, tmp_path):
    records.write(tmp_path, fakes.simulated(tunings, "zen3-sound-100", "one"))
    [path] = records.listing(tmp_path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"cachewise-fleet-schema": "9"}), path)
    assert records.check(path) == "schema: found 9, accepted 1"
    with pytest.raises(FleetError, match="no records of schema 1"):
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


def test_hosts_that_lose_by_a_profile_do_not_agree_with_it():
    """Half of the hosts lose 20 % by it and have shown that; the others chose it."""
    logs = np.zeros((4, 2), np.float32)
    logs[:, 0] = [-0.2, -0.2, 0.2, 0.2]
    logs[:, 1] = -0.1
    errors = np.full_like(logs, 0.01)
    theirs = np.array([[0], [0], [1], [LIBC]], np.int32)
    found = agreement(logs, errors, np.median(logs, axis=0), theirs, np.array([0], np.int32), 1)
    assert found.served[:, 0].tolist() == [True, True, False, False]
    assert found.same[:2, 0].all()
    # What is not shown is allowed; what nobody knows is not.
    wide = agreement(logs, errors * 30, np.zeros(2, np.float32), theirs, np.array([0], np.int32), 1)
    assert wide.served.all()
    none = agreement(logs, errors, np.zeros(2, np.float32), theirs, np.array([UNKNOWN], np.int32), 1)
    assert not none.served.any()


def test_the_nearest_size_stands_in_for_one_that_was_not_measured():
    one = np.array([[np.nan, 1, np.nan, np.nan, 4, np.nan]], np.float32)
    assert nearest(one, 3).tolist() == [[1, 1, 1, 4, 4, 4]]
