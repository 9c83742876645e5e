//! `xtask dist`, and what somebody does with it where no Rust and no clone is: each package installed as the
//! README says, used and removed, in Debian's own files. With effort `thorough` also in Debian 13,
//! and built a second time elsewhere.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Runs it; what it printed on both streams.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, told.concat());
    told.concat()
}

fn sh(script: &str, folder: &Path) -> String {
    run(Command::new("sh").args(["-euc", script]).current_dir(folder))
}

/// Makes it all in that target folder; what each file's sum is.
fn made(output: &Path, target: &Path) -> BTreeMap<String, String> {
    let mut make = Command::new(env!("CARGO_BIN_EXE_xtask"));
    make.args(["dist", "--output"]).arg(output);
    run(make.env("CARGO_TARGET_DIR", target));
    sh("sha256sum --check --quiet --strict SHA256SUMS", output);
    let sums = std::fs::read_to_string(output.join("SHA256SUMS")).expect("sums");
    let sums = sums.lines().map(|line| line.split_once("  ").expect("a sum and a file"));
    let sums: BTreeMap<_, _> = sums.map(|(sum, file)| (file.to_owned(), sum.to_owned())).collect();
    let files = std::fs::read_dir(output).expect("a folder").count();
    assert_eq!(sums.len(), files - 1, "all but the list itself: {sums:?}");
    sums
}

/// The README's line that begins so, up to its comment.
fn line(beginning: &str) -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let line = readme.lines().find(|line| line.starts_with(beginning)).expect(beginning);
    line.split("  #").next().unwrap_or(line).trim().to_owned()
}

/// What is in a root file system; `PIP` and `APT` are the README's lines. Whoever is root there needs no `sudo`.
const USED: &str = "
export HOME=/root LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
sudo() { \"$@\"; }
listed() { find / -xdev -name '*cachewise*' -not -path '/dist/*' -not -path '/proc/*' -not -path '/sys/*' \
    -not -path '/var/log/*' -not -path '/venv/*'; }
cd /dist

# The wheel, with NumPy's arrays in the pool.
python3 -m venv /venv
(
    PATH=/venv/bin:$PATH
    PIP
    cachewise --version
    pip install --quiet --no-index /numpy/*.whl
    echo 'import numpy; a = numpy.ones(1 << 20); print(numpy.zeros(1 << 20).sum() + a.sum())' > /sums.py
    test \"$(python -m cachewise.run --pool 64M /sums.py)\" = 1048576.0
    python -m cachewise.run --pool 64M --stats /sums.py 2>&1 | grep -q '^cachewise: '
)

# The package.
APT
cachewise --version
# Whether something is gained here, nothing, or cannot be told.
judged() { status=0; \"$@\" || status=$?; case $status in 0|3|4) ;; *) exit $status;; esac; }
judged cachewise tune --budget 5s --memory 64M --system --force
ls /etc/cachewise/*.profile
judged cachewise doctor > /doctor
grep -q /etc/cachewise/ /doctor
cachewise exec -- /bin/cat /proc/self/maps | grep -q \"/usr/lib/$(uname -m)-linux-gnu/libcachewise_preload.so\"
cachewise exec --stats -- /bin/ls / 2>&1 | grep -q '^copy '
ldconfig -p | grep -q 'libcachewise.so.0 '
for file in include/cachewise.h include/cachewise_pool.h share/man/man1/cachewise-exec.1.gz \
    share/bash-completion/completions/cachewise lib/systemd/system/cachewise-tune.service \
    lib/systemd/system/cachewise-scrubd.socket lib/$(uname -m)-linux-gnu/libcachewise_pool.a \
    lib/$(uname -m)-linux-gnu/pkgconfig/cachewise.pc lib/$(uname -m)-linux-gnu/cmake/cachewise/cachewise-config.cmake
do test -e /usr/$file || { echo /usr/$file; false; }; done
grep -q '^ExecStart=/usr/bin/cachewise tune' /usr/lib/systemd/system/cachewise-tune.service

# An upgrade and a removal keep the profile; a purge keeps nothing, nor links to units.
if command -v systemctl > /dev/null; then
    systemctl enable cachewise-tune.service
    test -L /etc/systemd/system/multi-user.target.wants/cachewise-tune.service
fi
dpkg --install cachewise_*_amd64.deb
ls /etc/cachewise/*.profile
apt-get remove --yes cachewise
ls /etc/cachewise/*.profile
dpkg --purge cachewise
test ! -e /etc/cachewise
test -z \"$(listed)\" || { listed; false; }

# The same as an RPM, where there is such a program.
if command -v rpm > /dev/null; then
    rpm --install --nodeps cachewise-*.x86_64.rpm
    cachewise exec -- /bin/cat /proc/self/maps | grep -q /usr/lib64/libcachewise_preload.so
    rpm --erase cachewise
    test -z \"$(listed)\" || { listed; false; }
fi
echo all removed
";

/// What a root file system is used for; it is Debian's, made from packages. NumPy is a wheel for its Python.
fn used_in(suite: &str, python: &str, more: &str, place: &Path) {
    let root = place.join(suite);
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=minbase"]);
    run(make.arg(format!("--include=python3-venv{more}")).arg(suite).arg(&root));
    sh(&format!("cp -r dist {suite}/dist"), place);
    let numpy = format!(
        "python3 -m pip download --quiet --only-binary=:all: --python-version {python} --dest {suite}/numpy 'numpy>=2,<3'"
    );
    sh(&numpy, place);
    let script =
        USED.replace("PIP", &line("pip install")).replace("APT", &line("sudo apt install"));
    std::fs::write(root.join("used.sh"), script).expect("written");
    // Mounts that are gone with the last process.
    let inside = "mount -t proc proc \"$1/proc\"; mount --rbind /sys \"$1/sys\"; mount --rbind /dev \"$1/dev\"
        exec chroot \"$1\" /bin/sh -eux /used.sh";
    let mut enter = Command::new("unshare");
    enter.args(["--mount", "--pid", "--fork", "sh", "-euc", inside, "sh"]).arg(&root);
    let told = run(&mut enter);
    assert!(told.ends_with("all removed\n"), "{suite}: {told}");
}

#[test]
fn what_is_made_is_installed_used_and_removed() {
    let whole = std::env::var("CACHEWISE_TEST_EFFORT").is_ok_and(|effort| effort == "thorough");
    let directory = tempfile::tempdir().expect("a directory");
    let (place, dist) = (directory.path(), directory.path().join("dist"));
    // What was built there is not built again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let sums = made(&dist, target);
    assert_eq!(sums.len(), 5, "{sums:?}");

    // The archive's command, from wherever it was unpacked, with its own library.
    sh("tar -xzf dist/*-x86_64-unknown-linux-gnu.tar.gz", place);
    let maps = sh("cachewise-*/bin/cachewise exec -- cat /proc/self/maps", place);
    assert!(maps.contains("linux-gnu/lib/libcachewise_preload.so"), "{maps}");

    let bill = sh("cat dist/*.cdx.json", place);
    let bill: serde_json::Value = serde_json::from_str(&bill).expect("JSON");
    assert_eq!(bill["bomFormat"], "CycloneDX");
    let components = bill["components"].as_array().expect("components");
    assert!(components.len() > 30, "{}", components.len());
    let clap = components.iter().find(|one| one["name"] == "clap").expect("a crate");
    assert!(clap["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/clap@")));
    assert!(clap["licenses"].is_array(), "{clap}");

    // Here with RPM's and systemd's programs.
    used_in("bookworm", "3.11", ",rpm,systemd", place);
    if whole {
        used_in("trixie", "3.13", "", place);
        let (again, elsewhere) = (place.join("again"), place.join("target"));
        let same = made(&again, &elsewhere);
        let differ: Vec<_> =
            same.iter().filter(|(file, sum)| sums.get(*file) != Some(sum)).collect();
        assert!(differ.is_empty(), "{differ:?}");
    }
}
