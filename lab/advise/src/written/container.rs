//! Forms for containers: Dockerfile, docker-compose, Kubernetes.

use super::quoting::in_quotes;
use crate::candidates::Candidate;
use crate::lists::separator;

/// Packages of an allocator's library, by its file: for apt, the first that there is, and for dnf.
const PACKAGES: [(&str, &str, &str); 5] = [
    ("libjemalloc.so.2", "libjemalloc2", "jemalloc"),
    ("libmimalloc.so.2", "libmimalloc2.0", "mimalloc"),
    ("libmimalloc.so.3", "libmimalloc3", "mimalloc"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4t64 libtcmalloc-minimal4", "gperftools-libs"),
    ("libtcmalloc.so.4", "libgoogle-perftools4t64 libgoogle-perftools4", "gperftools-libs"),
];

/// Files that `LD_PRELOAD` names.
fn preloaded(candidate: &Candidate) -> impl Iterator<Item = &str> {
    let value = candidate.variables.iter().find(|(name, _)| name == "LD_PRELOAD");
    value.map_or("", |(_, value)| value).split([':', ' ']).filter(|file| !file.is_empty())
}

/// Steps for the end of a Dockerfile: the package, a step that fails where the library does not load, the variables.
pub(super) fn dockerfile(candidate: &Candidate) -> String {
    let mut lines =
        "# Append it behind the last build step: steps below it would run with the setting.\n"
            .to_owned();
    for file in preloaded(candidate) {
        match PACKAGES.iter().find(|(name, ..)| *name == file) {
            Some((_, apt, dnf)) => {
                let install =
                    |package: &str| format!("apt-get install -y --no-install-recommends {package}");
                let tries: Vec<String> = apt.split(' ').map(install).collect();
                lines.push_str(&format!(
                    "RUN if command -v apt-get >/dev/null; then apt-get update && ({}) && rm -rf \
                     /var/lib/apt/lists/*; else dnf install -y {dnf}; fi\n",
                    tries.join(" || ")
                ));
            }
            None => lines.push_str(&format!("# The image needs {file}.\n")),
        }
        // The dynamic linker only warns, in every process. Another one than glibc's would not warn.
        lines.push_str(&format!(
            "RUN test -z \"$(LD_PRELOAD={file} /bin/true 2>&1)\" && LD_PRELOAD={file} cat /proc/self/maps | grep -q {}\n",
            file.rsplit('/').next().unwrap_or(file).split(".so").next().unwrap_or(file)
        ));
    }
    for (name, value) in &candidate.variables {
        let value = in_quotes(value, "\\$");
        // Keep the values of earlier steps and of the base image.
        let own = match separator(name) {
            Some(separator) => format!(
                "{}${{{name}:+{separator}${name}}}\"",
                value.strip_suffix('"').unwrap_or(&value)
            ),
            None => value,
        };
        lines.push_str(&format!("ENV {name}={own}\n"));
    }
    lines
}

/// A word in YAML: JSON's strings are such.
fn in_yaml(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A name as services and containers may have it.
fn label(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let label: String = name.chars().map(plain).collect();
    let label = label.trim_matches('-');
    if label.is_empty() { "program".to_owned() } else { label.to_owned() }
}

/// A line that says what the image needs; nothing where it needs nothing.
fn needs(candidate: &Candidate) -> String {
    preloaded(candidate)
        .map(|file| {
            format!("# The image needs {file}: --write Dockerfile.advised has the steps.\n")
        })
        .collect()
}

/// A second file for `docker compose`. There `$$` is a dollar.
pub(super) fn compose(candidate: &Candidate, program: &str) -> String {
    let line = |(name, value): &(String, String)| {
        format!("      {name}: {}\n", in_yaml(&value.replace('$', "$$")))
    };
    let variables: String = candidate.variables.iter().map(line).collect();
    format!(
        "# docker compose -f compose.yaml -f THIS up; the name below is that of your service.\n{}services:\n  {}:\n    \
         environment:\n{variables}",
        needs(candidate),
        label(program)
    )
}

/// A patch for a workload with a pod template. There `$(NAME)` would be another variable, `$$(` is a dollar.
pub(super) fn kubernetes(candidate: &Candidate, program: &str) -> String {
    let line = |(name, value): &(String, String)| {
        let value = in_yaml(&value.replace("$(", "$$("));
        format!("            - name: {name}\n              value: {value}\n")
    };
    let variables: String = candidate.variables.iter().map(line).collect();
    format!(
        "# kubectl patch deployment NAME --patch-file THIS; the name below is that of your container.\n{}spec:\n  \
         template:\n    spec:\n      containers:\n        - name: {}\n          env:\n{variables}",
        needs(candidate),
        label(program)
    )
}

#[cfg(test)]
mod tests {
    use crate::candidates::{Acts, Candidate, Kind, quoted};
    use crate::written::{Form, text};
    use std::process::Command;
    use yaml_rust2::YamlLoader;

    fn preload() -> Candidate {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Candidate {
            name: "jemalloc".to_owned(),
            kind: Kind::Allocator,
            acts: Acts::Blocks,
            variables: [("LD_PRELOAD", "libjemalloc.so.2"), ("MALLOC_CONF", "a:$(b) \"c\"")]
                .map(owned)
                .to_vec(),
            words: vec![],
            no_huge_pages: false,
        }
    }

    #[test]
    fn yaml_has_the_variables_below_the_programs_name() {
        let command = ["./My_Program 1".to_owned()];
        let document = |form| {
            let text = text(form, &preload(), &command, "y: z").expect("a text");
            YamlLoader::load_from_str(&text).expect("YAML").remove(0)
        };
        let compose = document(Form::Compose);
        let set = &compose["services"]["my-program-1"]["environment"];
        assert_eq!(set["LD_PRELOAD"].as_str(), Some("libjemalloc.so.2"));
        assert_eq!(set["MALLOC_CONF"].as_str(), Some("a:$$(b) \"c\""));
        let patch = document(Form::Kubernetes);
        let container = &patch["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["name"].as_str(), Some("my-program-1"));
        assert_eq!(container["env"][0]["value"].as_str(), Some("libjemalloc.so.2"));
        assert_eq!(container["env"][1]["name"].as_str(), Some("MALLOC_CONF"));
        assert_eq!(container["env"][1]["value"].as_str(), Some("a:$$(b) \"c\""));
    }

    #[test]
    fn a_dockerfile_installs_proves_and_then_sets() {
        let text = text(Form::Dockerfile, &preload(), &[], "y").expect("a text");
        let steps: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let [install, proof, first, second] = steps[..] else { panic!("{text}") };
        assert!(install.starts_with("RUN ") && install.contains("libjemalloc2"), "{text}");
        assert!(proof.starts_with("RUN test -z "), "{text}");
        assert_eq!(first, "ENV LD_PRELOAD=\"libjemalloc.so.2${LD_PRELOAD:+:$LD_PRELOAD}\"");
        assert_eq!(second, "ENV MALLOC_CONF=\"a:\\$(b) \\\"c\\\"${MALLOC_CONF:+,$MALLOC_CONF}\"");
        assert!(!text.contains("/usr/lib"), "by name, not by path: {text}");
    }

    /// A layer above this machine's files, then `$2`, in which `inside` is a command in it.
    const LAYER: &str = "mount -t tmpfs none $1; mkdir $1/upper $1/work $1/root; root=$1/root
        mount -t overlay none -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $root
        mount -t tmpfs none $root/tmp; mount -t proc proc $root/proc; mount --rbind /dev $root/dev
        inside() { chroot $root /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \"$@\"; }
        eval \"$2\"";

    fn layered(folder: &std::path::Path, lines: &str) -> std::process::Output {
        let mut sh = Command::new("unshare");
        sh.args(["--mount", "sh", "-euc", LAYER, "sh"]).arg(folder).arg(lines);
        sh.output().expect("unshare")
    }

    /// Runs what is written, as written: its steps in a layer above this Debian's files, then a program with its variables.
    #[test]
    #[ignore = "long: CI runs it, by --include-ignored"]
    fn a_dockerfile_works_as_written_and_its_build_fails_without_the_library() {
        let folder = tempfile::tempdir().expect("a folder");
        let tried = layered(folder.path(), "true");
        if !tried.status.success() {
            let why = String::from_utf8_lossy(&tried.stderr);
            eprintln!("a Dockerfile: SKIPPED, mounts are refused here: {why}");
            return;
        }
        let text = text(Form::Dockerfile, &preload(), &[], "y").expect("a text");
        let steps = |text: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix("RUN "));
            lines.map(|step| format!("inside /bin/sh -c {}", quoted(step))).collect()
        };
        // As a builder expands it where nothing was set before.
        let set = |line: &str| {
            let (name, value) = line.strip_prefix("ENV ")?.split_once('=')?;
            let value = value.trim_matches('"').split("${").next().unwrap_or_default();
            Some(quoted(&format!("{name}={}", value.replace("\\$", "$").replace("\\\"", "\""))))
        };
        let variable = text.lines().find_map(set).expect("a preload");
        let show = format!("inside {variable} cat /proc/self/maps");
        let built = steps(&text).join(" >&2\n");
        let maps = layered(folder.path(), &format!("{built} >&2\necho built\n{show}"));
        let (printed, told) =
            (String::from_utf8_lossy(&maps.stdout), String::from_utf8_lossy(&maps.stderr));
        assert!(maps.status.success(), "{told}");
        assert!(
            printed.starts_with("built\n") && printed.contains("libjemalloc.so.2"),
            "{printed}"
        );
        assert!(!told.contains("LD_PRELOAD"), "the dynamic linker warns: {told}");
        let failing = text.replace("libjemalloc.so.2", "libnowhere.so.1");
        let proof = steps(&failing).pop().expect("a step");
        let refused = layered(folder.path(), &format!("echo begun\n{proof}"));
        assert!(
            !refused.status.success() && refused.stdout.starts_with(b"begun\n"),
            "the build goes on without the library: {refused:?}"
        );
    }
}
