//! A setting in the forms in which it is deployed: for a shell, an environment file, systemd, a Dockerfile, Kubernetes.

use crate::lists::separator;
use crate::settings::{ALLOCATORS, Candidate, kept};
use std::path::Path;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines that a shell reads (`. FILE`).
    Shell,
    /// Lines `NAME=VALUE`, as `EnvironmentFile=` of systemd, `docker run --env-file` and compose's `env_file` read them.
    Environment,
    /// A drop-in for a systemd unit.
    Systemd,
    /// Lines for the end of a Dockerfile.
    Dockerfile,
    /// A patch for `kubectl patch --patch-file`.
    Kubernetes,
}

/// File names and their forms, as an error says them.
pub const ACCEPTED: &str = "*.sh, *.env (docker, compose, systemd's EnvironmentFile), *.conf (systemd drop-in), \
    *Dockerfile* or *Containerfile*, *k8s*.yaml or *kubernetes*.yaml";

impl Form {
    /// The form that a file's name asks for; none for other names.
    pub fn of(file: &Path) -> Option<Form> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
        Some(match () {
            () if file == Path::new("-") || file == Path::new("/dev/stdout") => Form::Shell,
            () if name.ends_with(".sh") => Form::Shell,
            () if name.ends_with(".env") => Form::Environment,
            () if name.ends_with(".conf") || name.ends_with(".service") => Form::Systemd,
            () if name.contains("dockerfile") || name.contains("containerfile") => Form::Dockerfile,
            () if is_yaml && (name.contains("k8s") || name.contains("kubernetes")) => {
                Form::Kubernetes
            }
            () => return None,
        })
    }
}

/// The text of the file: `about` says in a line what it is.
///
/// # Errors
/// The form cannot express the setting; the message names the form that can.
pub fn text(
    form: Form,
    candidate: &Candidate,
    command: &[String],
    about: &str,
) -> Result<String, String> {
    if candidate.no_huge_pages && form != Form::Systemd {
        return Err("found huge pages switched off for the process, which a service manager does: expected *.conf"
            .to_owned());
    }
    let each = |line: &dyn Fn(&str, &str) -> String| -> String {
        candidate.variables.iter().map(|(name, value)| line(name, value)).collect()
    };
    let name = command.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    let unset = &candidate.unset;
    let lines = match form {
        Form::Environment | Form::Dockerfile | Form::Kubernetes if !unset.is_empty() => {
            let names = unset.join(", ");
            return Err(format!(
                "found {names}, to be unset where it is set: expected *.sh or *.conf"
            ));
        }
        Form::Shell if !unset.is_empty() => format!("unset {}\n", unset.join(" ")),
        Form::Systemd if !unset.is_empty() => {
            format!("[Service]\nUnsetEnvironment={}\n", unset.join(" "))
        }
        Form::Shell => each(&|name, value| format!("export {name}={}\n", joined(name, value))),
        Form::Environment => each(&|name, value| format!("{name}={value}\n")),
        Form::Systemd => systemd(candidate),
        Form::Dockerfile => dockerfile(candidate),
        Form::Kubernetes => kubernetes(candidate, name),
    };
    let start = match candidate.words.is_empty() {
        true => String::new(),
        false => {
            let alone = Candidate { variables: Vec::new(), ..candidate.clone() };
            format!("# Start it as: {}\n", alone.line(command))
        }
    };
    Ok(format!("# {about}\n{lines}{start}"))
}

/// A value for a shell; of a list, before what is set already.
fn joined(name: &str, value: &str) -> String {
    match separator(name) {
        Some(' ') => format!("{}\"${{{name}:+ ${name}}}\"", kept(value)),
        Some(separator) => format!("{}${{{name}:+{separator}${name}}}", kept(value)),
        None => kept(value),
    }
}

/// A value in double quotes, as systemd and Dockerfiles take it.
fn in_quotes(value: &str, dollar: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', dollar);
    format!("\"{escaped}\"")
}

/// A drop-in for a systemd unit that sets these variables.
pub fn drop_in(variables: &[(String, String)]) -> String {
    // `%` begins a specifier there, and `$` is not expanded.
    let line = |(name, value): &(String, String)| {
        let assigned = format!("{name}={}", value.replace('%', "%%"));
        format!("Environment={}\n", in_quotes(&assigned, "$"))
    };
    format!("[Service]\n{}", variables.iter().map(line).collect::<String>())
}

fn systemd(candidate: &Candidate) -> String {
    let mut lines = drop_in(&candidate.variables);
    if candidate.no_huge_pages {
        lines.push_str(
            "# From systemd 260 on; older ones ignore it with a warning.\nMemoryTHP=disable\n",
        );
    }
    for (name, _) in candidate.variables.iter().filter(|(name, _)| separator(name).is_some()) {
        lines.push_str(&format!(
            "# Where the unit sets {name} already, join both values: the last assignment counts.\n"
        ));
    }
    lines
}

/// Files that `LD_PRELOAD` names.
fn preloaded(candidate: &Candidate) -> impl Iterator<Item = &str> {
    let value = candidate.variables.iter().find(|(name, _)| name == "LD_PRELOAD");
    value.map_or("", |(_, value)| value).split([':', ' ']).filter(|file| !file.is_empty())
}

/// Steps for the end of a Dockerfile: the package, a step that fails where the library does not load, the variables.
/// Packages are installed by root, whoever the image runs as: its own user has to be named again.
fn dockerfile(candidate: &Candidate) -> String {
    let mut lines =
        "# Append it behind the last build step: steps below it would run with the setting.\n"
            .to_owned();
    for (at, file) in preloaded(candidate).enumerate() {
        if at == 0 {
            lines.push_str("USER root\n");
        }
        let package = ALLOCATORS.iter().find_map(|of| {
            let (_, debian) = of.files.iter().find(|(name, _)| *name == file)?;
            Some((of.packages, *debian))
        });
        lines.push_str(&match package {
            None => format!("# The image needs {file}.\n"),
            Some(([_, alpine, fedora], debian)) => {
                let install = |name| format!("apt-get install -y --no-install-recommends {name}");
                let tries: Vec<String> = debian.split(' ').map(install).collect();
                format!(
                    "RUN if command -v apt-get >/dev/null; then apt-get update && ({}) && rm -rf \
                     /var/lib/apt/lists/*; elif command -v apk >/dev/null; then apk add {alpine}; else dnf \
                     install -y {fedora}; fi\n",
                    tries.join(" || ")
                )
            }
        });
        // The dynamic linker only warns, in every process. Another one than glibc's would not warn.
        lines.push_str(&format!(
            "RUN test -z \"$(LD_PRELOAD={file} /bin/true 2>&1)\" && LD_PRELOAD={file} cat /proc/self/maps | grep -q {}\n",
            file.rsplit('/').next().unwrap_or(file).split(".so").next().unwrap_or(file)
        ));
    }
    if preloaded(candidate).next().is_some() {
        lines.push_str("# Where the image has a USER, repeat that line here.\n");
    }
    for (name, value) in &candidate.variables {
        let value = in_quotes(value, "\\$");
        // Keep the values of earlier steps and of the base image.
        let own = match separator(name) {
            Some(separator) => {
                let open = value.strip_suffix('"').unwrap_or(&value);
                format!("{open}${{{name}:+{separator}${name}}}\"")
            }
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

/// A patch for a workload with a pod template. There `$(NAME)` would be another variable, `$$(` is a dollar.
fn kubernetes(candidate: &Candidate, program: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let label: String = program.chars().map(plain).collect();
    let label = match label.trim_matches('-') {
        "" => "program",
        label => label,
    };
    let needs: String = preloaded(candidate)
        .map(|file| {
            format!("# The image needs {file}: --write Dockerfile.advised has the steps.\n")
        })
        .collect();
    let line = |(name, value): &(String, String)| {
        let value = in_yaml(&value.replace("$(", "$$("));
        format!("            - name: {name}\n              value: {value}\n")
    };
    let variables: String = candidate.variables.iter().map(line).collect();
    format!(
        "# kubectl patch deployment NAME --patch-file THIS; the name below is that of your container.\n{needs}spec:\n  \
         template:\n    spec:\n      containers:\n        - name: {label}\n          env:\n{variables}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Acts, Kind};
    use std::process::Command;
    use yaml_rust2::YamlLoader;

    fn candidate(variables: &[(&str, &str)]) -> Candidate {
        Candidate::new("x", Kind::Variables, Acts::Faults, variables)
    }

    fn written(form: Form, candidate: &Candidate) -> String {
        text(form, candidate, &["./My_Program 1".to_owned()], "y: z").expect("a text")
    }

    #[test]
    fn a_file_is_in_the_form_of_its_name_or_in_none() {
        for (name, form) in [
            ("advised.sh", Some(Form::Shell)),
            ("-", Some(Form::Shell)),
            (".env", Some(Form::Environment)),
            ("a/override.conf", Some(Form::Systemd)),
            ("Dockerfile.cachewise", Some(Form::Dockerfile)),
            ("k8s-patch.yaml", Some(Form::Kubernetes)),
            ("compose.yaml", None),
            ("settings.c", None),
        ] {
            assert_eq!(Form::of(Path::new(name)), form, "{name}");
        }
    }

    /// A list that is set keeps its values, after the setting's; what is unset is gone.
    #[test]
    fn a_shell_has_the_values_and_a_list_that_is_set_is_extended() {
        let sets = candidate(&[("GLIBC_TUNABLES", "a=1"), ("A", "1:b \"$c\" 5%")]);
        let unsets = Candidate { unset: vec!["B".to_owned()], ..candidate(&[]) };
        for (setting, before, after) in [
            (&sets, "", "a=1|1:b \"$c\" 5%|\n"),
            (&sets, "GLIBC_TUNABLES=b=2", "a=1:b=2|1:b \"$c\" 5%|\n"),
            (&unsets, "B=1", "||\n"),
        ] {
            let text = written(Form::Shell, setting);
            let script = format!("{before}\n{text}echo \"$GLIBC_TUNABLES|$A|$B\"");
            let out = Command::new("sh").args(["-c", &script]).env_clear().output().expect("sh");
            assert_eq!(String::from_utf8_lossy(&out.stdout), after, "{script}");
        }
    }

    #[test]
    fn each_form_keeps_the_value_and_says_what_it_cannot() {
        let preload = candidate(&[("LD_PRELOAD", "libjemalloc.so.2"), ("B", "a:$(b) \"c\" 5%")]);
        let systemd = written(Form::Systemd, &preload);
        assert!(systemd.contains("\nEnvironment=\"B=a:$(b) \\\"c\\\" 5%%\"\n"), "{systemd}");
        let patch = YamlLoader::load_from_str(&written(Form::Kubernetes, &preload)).expect("YAML");
        let container = &patch[0]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["name"].as_str(), Some("my-program-1"));
        assert_eq!(container["env"][1]["value"].as_str(), Some("a:$$(b) \"c\" 5%"));
        let docker = written(Form::Dockerfile, &preload);
        let steps: Vec<&str> = docker.lines().filter(|line| !line.starts_with('#')).collect();
        let [root, install, proof, first, second] = steps[..] else { panic!("{docker}") };
        assert!(root == "USER root" && install.contains("libjemalloc2"), "{docker}");
        assert!(proof.starts_with("RUN test -z "), "{docker}");
        assert_eq!(first, "ENV LD_PRELOAD=\"libjemalloc.so.2${LD_PRELOAD:+:$LD_PRELOAD}\"");
        assert_eq!(second, "ENV B=\"a:\\$(b) \\\"c\\\" 5%\"");
        let huge = Candidate { no_huge_pages: true, ..candidate(&[]) };
        assert!(written(Form::Systemd, &huge).contains("\nMemoryTHP=disable\n"));
        for form in [Form::Shell, Form::Kubernetes, Form::Dockerfile] {
            assert!(text(form, &huge, &[], "y").is_err_and(|why| why.contains("*.conf")));
        }
    }
}
