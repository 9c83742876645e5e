//! A setting in the forms in which it is deployed.

mod container;
mod quoting;
mod source;

use crate::candidates::{Candidate, quoted};
use crate::lists::separator;
use quoting::in_quotes;
use std::path::Path;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines that a shell reads (`. FILE`).
    Shell,
    /// Lines `NAME=VALUE`, as `EnvironmentFile=` of systemd and `docker run --env-file` read them.
    Environment,
    /// A drop-in for a systemd unit.
    Systemd,
    /// Lines for the end of a Dockerfile.
    Dockerfile,
    /// A second file for `docker compose -f`.
    Compose,
    /// A patch for `kubectl patch --patch-file`.
    Kubernetes,
    /// C source to compile into the program.
    C,
    /// A Rust module.
    Rust,
    /// A Python module.
    Python,
}

/// File names and their forms, as an error says them.
pub const ACCEPTED: &str = "*.sh, *.env, *.conf or *.service (systemd), *Dockerfile* or *Containerfile*, compose*.yaml or \
    docker-compose*.yaml, *k8s*.yaml or *kubernetes*.yaml, *.c, *.rs, *.py";

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
            () if is_yaml
                && (name.starts_with("compose") || name.starts_with("docker-compose")) =>
            {
                Form::Compose
            }
            () if is_yaml && (name.contains("k8s") || name.contains("kubernetes")) => {
                Form::Kubernetes
            }
            () if name.ends_with(".c") || name.ends_with(".h") => Form::C,
            () if name.ends_with(".rs") => Form::Rust,
            () if name.ends_with(".py") => Form::Python,
            () => return None,
        })
    }
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

/// The text of the file: `about` says in a line what it is.
///
/// # Errors
/// The form cannot express the setting: why not.
pub fn text(
    form: Form,
    candidate: &Candidate,
    command: &[String],
    about: &str,
) -> Result<String, String> {
    let each = |line: &dyn Fn(&str, &str) -> String| -> String {
        candidate.variables.iter().map(|(name, value)| line(name, value)).collect()
    };
    let has_process_switch = matches!(form, Form::Systemd | Form::C | Form::Rust | Form::Python);
    if candidate.no_huge_pages && !has_process_switch {
        return Err("huge pages are switched off for a process by systemd or by the program itself: accepted *.conf, \
                    *.c, *.rs, *.py"
            .to_owned());
    }
    let name = command.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    let lines = match form {
        Form::Shell => each(&|name, value| format!("export {name}={}\n", joined(name, value))),
        Form::Environment => each(&|name, value| format!("{name}={value}\n")),
        Form::Systemd => systemd(candidate),
        Form::Dockerfile => container::dockerfile(candidate),
        Form::Compose => container::compose(candidate, name),
        Form::Kubernetes => container::kubernetes(candidate, name),
        Form::C => source::c(candidate)?,
        Form::Rust => source::rust(candidate)?,
        Form::Python => source::python(candidate)?,
    };
    let comment = match form {
        Form::C => "// ",
        Form::Rust => "//! ",
        _ => "# ",
    };
    let mut text = format!("{comment}{about}\n{lines}");
    if !candidate.words.is_empty() {
        let line = Candidate { variables: Vec::new(), ..candidate.clone() }.line(command);
        text.push_str(&format!("{comment}Start it as: {line}\n"));
    }
    Ok(text)
}

/// A value for a shell; of a list, before what is set already.
fn joined(name: &str, value: &str) -> String {
    match separator(name) {
        Some(' ') => format!("{}\"${{{name}:+ ${name}}}\"", quoted(value)),
        Some(separator) => format!("{}${{{name}:+{separator}${name}}}", quoted(value)),
        None => quoted(value),
    }
}

fn systemd(candidate: &Candidate) -> String {
    let mut lines = drop_in(&candidate.variables);
    if candidate.no_huge_pages {
        lines.push_str(
            "# From systemd 260 on; older ones ignore it with a warning.\nMemoryTHP=disable\n",
        );
    }
    let lists = candidate.variables.iter().filter(|(name, _)| separator(name).is_some());
    for (name, _) in lists {
        lines.push_str(&format!(
            "# Where the unit sets {name} already, join both values: the last assignment counts.\n"
        ));
    }
    lines
}

/// The text of `/etc/tunables.conf` (glibc 2.44): settings of all programs, as `GLIBC_TUNABLES` takes them, and of
/// single ones by the name of their file. Numbers are decimal.
pub fn tunables_conf(of_all: &str, programs: &[(String, String)]) -> String {
    let lines = |setting: &str| -> String {
        let line = |(name, value): (&str, &str)| {
            let number = value.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let value = number.map_or_else(|| value.to_owned(), |number| number.to_string());
            format!("{name}={value}\n")
        };
        setting.split(':').filter_map(|one| one.split_once('=')).map(line).collect()
    };
    let section =
        |(program, setting): &(String, String)| format!("[proc:{program}]\n{}[]\n", lines(setting));
    let sections: String = programs.iter().map(section).collect();
    let about = "# By cachewise export glibc; ldconfig puts it in force.\n";
    format!("{about}{}{sections}", lines(of_all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::{Acts, Kind};

    #[test]
    fn a_file_is_in_the_form_of_its_name_or_in_none() {
        for (name, form) in [
            ("advised.sh", Some(Form::Shell)),
            ("-", Some(Form::Shell)),
            (".env", Some(Form::Environment)),
            ("a/override.conf", Some(Form::Systemd)),
            ("Dockerfile.cachewise", Some(Form::Dockerfile)),
            ("compose.yaml", Some(Form::Compose)),
            ("docker-compose.override.yml", Some(Form::Compose)),
            ("k8s-patch.yaml", Some(Form::Kubernetes)),
            ("settings.c", Some(Form::C)),
            ("settings.rs", Some(Form::Rust)),
            ("settings.py", Some(Form::Python)),
            ("values.yaml", None),
            ("compose.json", None),
            ("settings", None),
        ] {
            assert_eq!(Form::of(Path::new(name)), form, "{name}");
        }
    }

    fn candidate(variables: &[(&str, &str)]) -> Candidate {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Candidate {
            name: "x".to_owned(),
            kind: Kind::Variables,
            acts: Acts::Faults,
            variables: variables.iter().map(owned).collect(),
            words: vec![],
            no_huge_pages: false,
        }
    }

    #[test]
    fn each_form_keeps_the_value() {
        let words = vec!["-m".to_owned(), "x".to_owned()];
        let candidate = Candidate { words, ..candidate(&[("A", "1:b \"$c\" 5%")]) };
        let command = ["python3".to_owned(), "p.py".to_owned()];
        for (form, expected) in [
            (Form::Shell, "# y\nexport A='1:b \"$c\" 5%'\n"),
            (Form::Environment, "# y\nA=1:b \"$c\" 5%\n"),
            (Form::Systemd, "# y\n[Service]\nEnvironment=\"A=1:b \\\"$c\\\" 5%%\"\n"),
        ] {
            let text = text(form, &candidate, &command, "y");
            assert_eq!(text, Ok(format!("{expected}# Start it as: python3 -m x p.py\n")));
        }
    }

    /// A shell that reads the file has both, the operator's last.
    #[test]
    fn a_list_that_is_set_already_is_extended() {
        let candidate =
            candidate(&[("GLIBC_TUNABLES", "a=1"), ("MALLOC_CONF", "x:1"), ("LD_PRELOAD", "")]);
        let text = text(Form::Shell, &candidate, &[], "y").expect("a text");
        let after = |before: &str| {
            let script = format!("{before}\n{text}echo \"$GLIBC_TUNABLES|$MALLOC_CONF\"");
            let out = std::process::Command::new("sh").args(["-c", &script]).env_clear().output();
            String::from_utf8(out.expect("sh").stdout).expect("text")
        };
        assert_eq!(after(""), "a=1|x:1\n");
        assert_eq!(after("GLIBC_TUNABLES=b=2 MALLOC_CONF='y:1,z:2'"), "a=1:b=2|x:1,y:1,z:2\n");
    }

    #[test]
    fn huge_pages_off_is_written_where_something_can_switch_them() {
        let candidate = Candidate { no_huge_pages: true, ..candidate(&[]) };
        let written = |form| text(form, &candidate, &[], "y");
        assert!(written(Form::Systemd).expect("a text").contains("\nMemoryTHP=disable\n"));
        for form in [Form::C, Form::Rust, Form::Python] {
            assert!(written(form).expect("a text").contains("41"), "{form:?}");
        }
        for form in [Form::Shell, Form::Compose, Form::Kubernetes, Form::Dockerfile] {
            assert!(written(form).is_err_and(|why| why.contains("*.conf")), "{form:?}");
        }
    }

    #[test]
    fn a_system_wide_file_has_a_section_for_each_program() {
        let programs = [(
            "redis-server".to_owned(),
            "glibc.malloc.mmap_max=0:glibc.malloc.top_pad=0x10".to_owned(),
        )];
        let text = tunables_conf("glibc.cpu.x86_non_temporal_threshold=0x4080", &programs);
        assert_eq!(
            text.lines().skip(1).collect::<Vec<_>>(),
            [
                "glibc.cpu.x86_non_temporal_threshold=16512",
                "[proc:redis-server]",
                "glibc.malloc.mmap_max=0",
                "glibc.malloc.top_pad=16",
                "[]",
            ]
        );
        assert_eq!(tunables_conf("", &[]).lines().count(), 1);
    }
}
