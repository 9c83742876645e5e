//! `xtask dist`, and what somebody does with it where no Rust and no clone is: each package installed as the
//! README says, used and removed. Here in this system's own files, which nothing is written to, and in a root folder
//! without glibc; with effort `thorough` in Debian's, and built a second time in another clone.
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

/// The clone that is tested.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder")
}

/// Makes it there; what each file's sum is.
fn made(make: &mut Command, output: &Path) -> BTreeMap<String, String> {
    run(make.arg("--output").arg(output));
    sh("sha256sum --check --quiet --strict SHA256SUMS", output);
    let sums = std::fs::read_to_string(output.join("SHA256SUMS")).expect("sums");
    let sums = sums.lines().map(|line| line.split_once("  ").expect("a sum and a file"));
    let sums: BTreeMap<_, _> = sums.map(|(sum, file)| (file.to_owned(), sum.to_owned())).collect();
    let files = std::fs::read_dir(output).expect("a folder").count();
    assert_eq!(sums.len(), files - 1, "all but the list itself: {sums:?}");
    sums
}

/// The chore, in the tests' own target folder: what was built there is not built again.
fn dist(options: &[&str]) -> Command {
    let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    dist.arg("dist").args(options).env("CARGO_TARGET_DIR", target);
    dist
}

/// The README's line that begins so, up to its comment.
fn line(beginning: &str) -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let line = readme.lines().find(|line| line.starts_with(beginning)).expect(beginning);
    line.split("  #").next().unwrap_or(line).trim().to_owned()
}

/// First lines of both scripts. Root needs no `sudo`.
const BEGUN: &str = "
export HOME=/root LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
sudo() { \"$@\"; }
listed() { find /etc /lib /opt /root /run /srv /usr /var -xdev -name '*cachewise*' -not -path '/var/log/*'; }
before=$(listed)
cd /dist
";

/// The wheel; `PIP` is the README's line.
const WHEEL: &str = "
python3 -m venv /venv
(
    PATH=/venv/bin:$PATH
    PIP
    cachewise --version
    ls /venv/lib/python3*/site-packages/cachewise-*.dist-info/licenses/LICENSE-MIT
    python -c 'import cachewise; page = bytearray(4); cachewise.fill(page, 1); assert sum(page) == 4'
    pip uninstall --quiet --yes cachewise
    test ! -e /venv/bin/cachewise
)
";

/// The packages; `APT` is the README's line.
const PACKAGE: &str = "
APT
ldd --version
cachewise --version
# Whether something is gained here, nothing, or cannot be told.
judged() { status=0; \"$@\" || status=$?; case $status in 0|3|4) ;; *) exit $status;; esac; }
judged cachewise tune --budget 5s --memory 64M --system --force
ls /etc/cachewise/*.profile
judged cachewise doctor > /doctor
grep -q /etc/cachewise/ /doctor
# The build that fits this CPU.
level=$(if grep -qw avx512_vbmi2 /proc/cpuinfo; then echo glibc-hwcaps/x86-64-v4/; fi)
cachewise exec -- /bin/cat /proc/self/maps | grep -q \"/usr/lib/$(uname -m)-linux-gnu/${level}libcachewise_preload.so\"
cachewise exec --stats -- /bin/ls / 2>&1 | grep -q '^copy '
ldconfig -p | grep -q 'libcachewise.so.0.2 '
for file in include/cachewise.h include/cachewise_pool.h share/man/man1/cachewise-exec.1.gz \
    share/bash-completion/completions/cachewise share/zsh/vendor-completions/_cachewise \
    share/doc/cachewise/copyright share/doc/cachewise/LICENSE-APACHE lib/systemd/system/cachewise-tune.service \
    lib/systemd/system/cachewise-scrubd.socket lib/$(uname -m)-linux-gnu/libcachewise_pool.a \
    lib/$(uname -m)-linux-gnu/pkgconfig/cachewise.pc lib/$(uname -m)-linux-gnu/cmake/cachewise/cachewise-config.cmake
do test -e /usr/$file || { echo /usr/$file; false; }; done
grep -q '^ExecStart=/usr/bin/cachewise tune' /usr/lib/systemd/system/cachewise-tune.service

# An upgrade and a removal keep the profile; a purge keeps nothing, nor links to units.
if command -v systemctl > /dev/null; then
    systemctl enable cachewise-tune.service
    test -L /etc/systemd/system/multi-user.target.wants/cachewise-tune.service
fi
dpkg-deb --raw-extract cachewise_*_amd64.deb /older
sed -i 's/^Version: .*/Version: 0.0.1/' /older/DEBIAN/control
dpkg-deb --build /older /older.deb
dpkg --install /older.deb
APT
test \"$(dpkg-query --show cachewise)\" != \"$(printf 'cachewise\\t0.0.1')\"
ls /etc/cachewise/*.profile
apt-get remove --yes cachewise
ls /etc/cachewise/*.profile
dpkg --purge cachewise
test ! -e /etc/cachewise
test \"$(listed)\" = \"$before\" || { listed; false; }

# The same as an RPM, where it was made and there is such a program.
if command -v rpm > /dev/null && ls cachewise-*.x86_64.rpm; then
    rpm --install --nodeps cachewise-*.x86_64.rpm
    cachewise exec -- /bin/cat /proc/self/maps | grep -q /usr/lib64/${level}libcachewise_preload.so
    rpm --erase cachewise
    test \"$(listed)\" = \"$before\" || { listed; false; }
fi
echo all removed
";

/// The script in a root file system, over all of which it is run: `on` makes `$root` of the folder `$1`.
fn used(script: &str, on: &str, folder: &str, place: &Path) -> String {
    let script = script.replace("PIP", &line("pip install"));
    let script = script.replace("APT", &line("sudo apt install"));
    std::fs::write(place.join("used.sh"), [BEGUN, &script].concat()).expect("written");
    // Mounts that are gone with the last process.
    let inside = format!(
        "{on}; cp -r dist used.sh $root; mount -t proc proc $root/proc; mount --rbind /sys $root/sys
        mount --rbind /dev $root/dev; exec env -i PATH=/usr/sbin:/usr/bin chroot $root /bin/sh -eux /used.sh"
    );
    let mut enter = Command::new("unshare");
    enter.args(["--mount", "--pid", "--fork", "sh", "-euc", &inside, "sh", folder]);
    let told = run(enter.current_dir(place));
    assert!(told.ends_with("all removed\n"), "{folder}: {told}");
    told
}

/// Debian's own files, made from packages.
fn used_in(suite: &str, more: &str, place: &Path) {
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=minbase", &format!("--include=python3-venv{more}")]);
    run(make.arg(suite).arg(place.join(suite)));
    // RPM 6 changes how mounts of `/` propagate, which has to be one.
    let on = "root=$1; mount --bind $root $root";
    let told = used(&(WHEEL.to_owned() + PACKAGE), on, suite, place);
    let glibc = told.lines().find(|line| line.starts_with("ldd (")).expect("which glibc it is");
    println!("{suite}: {glibc}: installed, used, removed");
    std::fs::remove_dir_all(place.join(suite)).expect("removed");
}

/// The archive's command, from wherever it was unpacked, with its own library, and programs that are linked with it.
fn archive_works(place: &Path) {
    sh("tar -xzf dist/*-x86_64-unknown-linux-gnu.tar.gz", place);
    let maps = sh("cachewise-*/bin/cachewise exec -- cat /proc/self/maps", place);
    // The build that fits the CPU.
    let has = is_x86_feature_detected!("avx512vbmi2");
    let level = if has { "glibc-hwcaps/x86-64-v4/" } else { "" };
    let own = format!("linux-gnu/lib/{level}libcachewise_preload.so");
    assert!(maps.contains(&own), "{maps}");
}

#[test]
fn what_is_made_for_this_machine_is_installed_used_and_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path();
    let sums = made(&mut dist(&["--native"]), &place.join("dist"));
    assert_eq!(sums.len(), 2, "{sums:?}");
    archive_works(place);
    let mounts = "mount -t tmpfs none /mnt; mkdir /mnt/upper /mnt/work; \
        mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt";
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "sh", "-euc", mounts]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        eprintln!("dist: SKIPPED, mounts are refused here: the archive alone was used");
        return;
    }
    // This system's files under a layer that takes what is written; its users' files and the clone are hidden.
    std::fs::create_dir(place.join("layers")).expect("a folder");
    let on = format!(
        "mount -t tmpfs none $1; mkdir $1/upper $1/work $1/root; root=$1/root
        mount -t overlay none -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $root
        mount -t tmpfs none $root/root; ! test -d $root{0} || mount -t tmpfs none $root{0}",
        root().display()
    );
    used(PACKAGE, &on, "layers", place);
}

/// A program that musl's loader starts, and that allocates.
const SERVICE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    unsigned sum = 0;
    for (int i = 0; i < 2000; i++) {
        char *block = malloc(1 << 18);
        memset(block, i, 1 << 18);
        sum += block[i];
        free(block);
    }
    printf("%u\n", sum);
    return 0;
}
"#;

/// Verbs in the root folder: the command line, and the status that it ends with.
const STATIC: [(&str, i32); 8] = [
    ("--version", 0),
    ("list experiments", 0),
    ("explain --op copy --size 1M", 0),
    ("doctor", 4),
    ("run roofline --size 64K --quick", 0),
    // No library is beside a static command: one line says where it was looked for.
    ("exec -- service", 1),
    ("advise --budget 5s -- nothing", 127),
    ("tune --quick", 1),
];

#[test]
fn the_static_command_works_where_there_is_no_glibc() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path();
    let sums = made(&mut dist(&["--static"]), &place.join("dist"));
    assert_eq!(sums.len(), 1, "{sums:?}");
    std::fs::write(place.join("service.c"), SERVICE).expect("written");
    sh(
        "mkdir -p root/bin root/lib root/proc root/tmp root/dev
        tar -xzf dist/*-static.tar.gz --strip-components 1 -C root/bin
        cp -L /lib/ld-musl-x86_64.so.1 root/lib
        musl-gcc -O2 -o root/bin/service service.c
        cp /bin/busybox root/bin; for name in sh cat; do ln -s busybox root/bin/$name; done
        ! find root -name '*libc.so.6*' -o -name 'ld-linux*' | grep .",
        place,
    );
    let within = |line: &str| {
        let script = format!(
            "mount -t proc proc root/proc; mount --bind /dev root/dev
            exec env -i PATH=/usr/sbin:/bin HOME=/tmp chroot root /bin/cachewise {line}"
        );
        let mut enter = Command::new("unshare");
        enter.args(["--mount", "--pid", "--fork", "sh", "-euc", &script]).current_dir(place);
        let ended = enter.output().expect("unshare");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
    };
    for (line, status) in STATIC {
        let (found, out, err) = within(line);
        if err.starts_with("unshare: ") {
            eprintln!("dist: SKIPPED, namespaces are refused here: {err}");
            return;
        }
        assert_eq!(found, Some(status), "{line}: {out}{err}");
        let is_told = status != 1 || err.trim().lines().count() == 1;
        assert!(is_told && !err.contains("panicked"), "{line}: {err}");
    }
    // An answer, whatever it is here.
    let (found, out, err) = within("advise --budget 10s -- service");
    assert!(matches!(found, Some(0 | 4)) && out.contains("gain here"), "{found:?}: {out}{err}");
}

#[test]
fn what_is_made_for_everybody_is_installed_used_and_removed() {
    if std::env::var("CACHEWISE_TEST_EFFORT").as_deref() != Ok("thorough") {
        println!("the effort is not thorough: what is made for this machine stands for the rest");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path();
    let sums = made(&mut dist(&[]), &place.join("dist"));
    assert_eq!(sums.len(), 8, "{sums:?}");
    archive_works(place);
    let bill = sh("cat dist/cachewise-[0-9]*-x86_64-*.cdx.json", place);
    let bill: serde_json::Value = serde_json::from_str(&bill).expect("JSON");
    let components = bill["components"].as_array().expect("components");
    assert!(components.iter().any(|one| one["name"] == "clap" && one["licenses"].is_array()));
    // The wheel for musl has the static command, and a module that asks for musl alone.
    let told = sh(
        "mkdir musl; python3 -m zipfile -e dist/*musllinux*.whl musl; cd musl/cachewise
        chmod +x bin/cachewise; bin/cachewise --version; ! readelf -l bin/cachewise | grep INTERP
        readelf -d _core*.so | grep NEEDED",
        place,
    );
    let mut needed = told.lines().filter(|line| line.contains("NEEDED"));
    assert!(needed.all(|line| line.ends_with("[libc.so]")), "{told}");
    used_in("bookworm", ",rpm,systemd", place);
    used_in("trixie", "", place);

    // The same commit at another path.
    let (clone, again) = (place.join("clone"), place.join("again"));
    run(Command::new("git").arg("clone").arg("--quiet").arg(root()).arg(&clone));
    let mut elsewhere = Command::new(env!("CARGO"));
    elsewhere.args(["run", "--quiet", "-p", "xtask", "--", "dist"]);
    elsewhere.current_dir(&clone).env_remove("CARGO_TARGET_DIR");
    let same = made(&mut elsewhere, &again);
    let differ: Vec<_> = same.iter().filter(|(file, sum)| sums.get(*file) != Some(sum)).collect();
    assert!(same.len() == sums.len() && differ.is_empty(), "{differ:?}");
}

/// Nothing is made before all needs are known, which are said together and at once.
#[test]
fn what_is_missing_is_said_before_anything_is_built() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = folder.path();
    // A PATH with no program but the compiler that is asked for its targets, and a Python without environments.
    for (name, script) in [
        ("rustc", "#!/bin/sh\necho /nonexistent\n"),
        ("python3", "#!/bin/sh\nexit 1\n"),
        ("cargo", "#!/bin/sh\necho built > \"$0.ran\"\nexit 1\n"),
    ] {
        let file = place.join(name);
        std::fs::write(&file, script).expect("written");
        sh(&format!("chmod +x {name}"), place);
    }
    let made = place.join("made");
    let mut dist = dist(&["--output"]);
    dist.arg(&made).env("PATH", place).env("RUSTC", place.join("rustc"));
    let ended = dist.env("CARGO", place.join("cargo")).output().expect("it starts");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success(), "{told}");
    for part in ["gcc", "binutils", "python3-venv"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!made.exists() && !place.join("cargo.ran").exists(), "{told}");
    assert!(!told.contains("stack backtrace") && told.trim().lines().count() <= 2, "{told}");
}
